"""A member takes over another one's weights: a copy of the checkpoint, then a line in its own file.
Both are there before anything is trained, so that a population can be killed at any moment."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ray.tune.schedulers import PopulationBasedTraining

from warpzone.run.files import append_text
from warpzone.search.lineage import MEMBERS, read_member

#: Beside the files of a checkpoint that is handed to Ray: whose it is.
TOLD = "member.json"


def number_of(trial_id: str) -> int:
    """The number of a member: Ray numbers the trials of an experiment."""
    return int(trial_id.rsplit("_", 1)[-1])


def member_file(folder: Path, number: int) -> Path:
    """What a member writes down."""
    return folder / MEMBERS / f"{number:02d}.jsonl"


def begin(folder: Path, number: int, parent: str, step: int, settings: dict[str, Any]) -> str:
    """Notes that a member begins a new run, and returns the run's name."""
    file = member_file(folder, number)
    begun = [row for row in read_member(file) if row["event"] == "begin"]
    stem = f"member-{number:02d}"
    run = f"{stem}-{len(begun) + 1}" if begun else stem
    row = {"event": "begin", "run": run, "parent": parent or None, "step": step}
    append_text(file, json.dumps({**row, "settings": settings}) + "\n")
    return run


def take_over(folder: Path, number: int, checkpoint: Path, settings: dict[str, Any]) -> str:
    """A member's new run, which is to begin from another one's checkpoint; returns its name."""
    told = json.loads((checkpoint / TOLD).read_text())
    place = incoming(folder, number)
    half = place.with_name(place.name + ".part")
    for path in (half, place):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(checkpoint, half)
    half.rename(place)
    return begin(folder, number, told["run"], int(told["step"]), settings)


def incoming(folder: Path, number: int) -> Path:
    """Where the checkpoint is that a member's new run begins from; whole, if it is there."""
    return folder / f".incoming-{number:02d}"


def settings_of(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a member's configuration; the rest is for this package."""
    return {name: value for name, value in config.items() if not name.startswith("_")}


class Exchanges(PopulationBasedTraining):
    """Notes what members are to take over when it is decided: some of them wait for a worker."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(**settings)
        self._folder = folder

    def _exploit(self, tune_controller: Any, trial: Any, trial_to_clone: Any) -> None:
        super()._exploit(tune_controller, trial, trial_to_clone)
        take_over(
            self._folder,
            number_of(trial.trial_id),
            Path(trial.checkpoint.path),
            settings_of(trial.config),
        )
