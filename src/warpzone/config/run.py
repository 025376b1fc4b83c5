"""Seed, device, paths, and intervals of evaluation and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import Annotated, Literal

from warpzone.config.bounds import AtLeast

#: Bytes of a run's name; folders' names may have 255.
MOST_NAME = 200


@dataclass(frozen=True)
class RunConfig:
    """Seed, device, paths and intervals."""

    overlap_collect: bool = False
    """Collect the next rollout while learning from the last (policy lag of one update)."""
    groups: Annotated[int, AtLeast(1)] = 2
    """Groups of lanes: one plays while the network decides for another."""
    seed: Annotated[int, AtLeast(0)] = 1
    """Seed of everything random."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the network runs."""
    run_name: str = ""
    """Folder below runs_dir; made from the time if not given."""
    runs_dir: str = "runs"
    """Folder of all runs."""
    eval_interval: Annotated[int, AtLeast(0)] = 0
    """Evaluate every this many steps and keep the best weights; 0 only at the end."""
    log_interval: Annotated[int, AtLeast(1)] = 1
    """Write metrics every this many updates."""


def name_problem(name: str) -> str:
    """What is wrong with the name of a run; empty if nothing is. It becomes a folder and is shown
    on terminals and pages. No name is a good one: it is made from the time."""
    if name in (".", "..") or name not in ("", PurePath(name).name):
        return f"--run-name is the name of one folder, not {name!r}"
    # Bytes that are no text arrive as surrogates, which are not printable either.
    if not name.isprintable():
        return f"--run-name has a character that cannot be printed: {name!r}"
    if len(name.encode()) > MOST_NAME:
        return f"--run-name has more than {MOST_NAME} bytes"
    return ""
