"""Repairs old side-cars: steps that were written as 0 are recomputed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.run.files import write_atomically, write_text
from warpzone.run.opening import read_file
from warpzone.run.sidecar import MOST_BYTES, OWN_HASH, encode, now, own_hash

#: Files looked at below a root.
MOST_FILES = 100_000
FORMULA = "global_step = global_update * num_envs * rollout_steps"


@dataclass(frozen=True)
class Outcome:
    """Result for one side-car: updated, would_update, already_has_step, already_reconstructed,
    no_update_info, missing_num_envs or unreadable."""

    path: Path
    status: str
    global_step: int = 0


def sidecars(root: Path) -> Iterator[Path]:
    """JSON files below a folder, in the order of their names; links are not followed."""
    left = MOST_FILES
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted(files):
            left -= 1
            if left < 0:
                return
            if name.endswith(".json"):
                yield Path(folder) / name


def backfill(path: Path, *, rollout_steps: int, dry_run: bool, backup: bool) -> Outcome | None:
    """Gives a side-car with the step 0 its step; None for a file that is not a side-car.
    Idempotent."""
    values = _read(path)
    if values is None:
        return Outcome(path, "unreadable")
    saved = values.get("save_state")
    if not isinstance(saved, dict):
        return None
    if "reconstructed_step_source" in values:
        return Outcome(path, "already_reconstructed", _count(saved.get("global_step")))
    if step := _count(saved.get("global_step")):
        return Outcome(path, "already_has_step", step)
    update = _count(saved.get("global_update"))
    if not update:
        return Outcome(path, "no_update_info")
    lanes, steps, assumed = _lanes(values), _steps(values), False
    if not lanes:
        return Outcome(path, "missing_num_envs")
    if not steps:
        steps, assumed = rollout_steps, True
    saved["global_step"] = update * lanes * steps
    values["reconstructed_step_source"] = {
        "method": "rebuild",
        "formula": FORMULA,
        "num_envs": lanes,
        "rollout_steps": steps,
        "rollout_steps_assumed": assumed,
        "checkpoint_global_update": update,
        "computed_at": now(),
    }
    if dry_run:
        return Outcome(path, "would_update", saved["global_step"])
    if backup:
        kept = path.with_name(path.name + ".bak")
        if not kept.exists():
            write_atomically(kept, lambda temporary: _copy(path, temporary))
    # Only side-cars that have a hash of their own get a new one: old ones stay unchanged.
    write_text(path, encode(values) if OWN_HASH in values else json.dumps(values, indent=1) + "\n")
    return Outcome(path, "updated", saved["global_step"])


def _copy(source: Path, target: Path) -> None:
    shutil.copy2(source, target)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        values = json.loads(read_file(path.parent, path.name, MOST_BYTES).decode())
        if not isinstance(values, dict):
            return {}
        changed = OWN_HASH in values and values[OWN_HASH] != own_hash(values)
    except (OSError, ValueError, RecursionError):
        return None
    return None if changed else values


def _lanes(values: dict[str, Any]) -> int:
    """In the configuration of today's side-cars, or where older ones had it."""
    return _field(values, "config", "num_envs") or _field(values, "vector_env", "num_envs")


def _steps(values: dict[str, Any]) -> int:
    return _field(values, "config", "rollout_steps")


def _field(values: dict[str, Any], part: str, name: str) -> int:
    inner = values.get(part)
    return _count(inner.get(name)) if isinstance(inner, dict) else 0


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
