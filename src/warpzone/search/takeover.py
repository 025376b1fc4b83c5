"""Members take over others' weights: copies of the checkpoints, then the decision about all of them
in one file, then a line in each one's own. All is there before anything is trained, so that a
population can be killed at any moment: it goes on as decided, or decides again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ray.tune.schedulers import PopulationBasedTraining

from warpzone.run.files import append_text, write_text
from warpzone.search.lineage import MEMBERS, read_member

#: Beside the files of a checkpoint that is handed to Ray: whose it is.
TOLD = "member.json"
#: In the population's folder while an exchange is written down: who takes over from whom.
DECIDED = ".exchange.json"
INCOMING = ".incoming-"


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
    row = fetch(folder, number, checkpoint, settings)
    return begin(folder, number, row["parent"], row["step"], settings)


def fetch(folder: Path, number: int, checkpoint: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Copies the checkpoint that a member is to begin from; returns what is decided about it."""
    told = json.loads((checkpoint / TOLD).read_text())
    place = incoming(folder, number)
    half = place.with_name(place.name + ".part")
    for path in (half, place):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(checkpoint, half)
    half.rename(place)
    row = {"member": number, "parent": told["run"], "step": int(told["step"])}
    return {**row, "settings": settings}


def write_exchange(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Writes down what was decided: about all members or, killed before, about none."""
    if rows:
        write_text(folder / DECIDED, json.dumps(rows))
        finish_exchange(folder)


def finish_exchange(folder: Path) -> None:
    """Writes the lines of an exchange that are not there yet; also after a kill in the middle."""
    decided = folder / DECIDED
    if not decided.is_file():
        return
    for row in json.loads(decided.read_text()):
        own = read_member(member_file(folder, row["member"]))
        last = own[-1] if own else {}
        if any(last.get(key) != row[key] for key in ("parent", "step", "settings")):
            begin(folder, row["member"], row["parent"], row["step"], row["settings"])
    decided.unlink()


def incoming(folder: Path, number: int) -> Path:
    """Where the checkpoint is that a member's new run begins from; whole, if it is there."""
    return folder / f"{INCOMING}{number:02d}"


def remove_incoming(folder: Path, pattern: str = "*") -> None:
    """Removes checkpoints that nobody takes over any more."""
    for path in folder.glob(INCOMING + pattern):
        shutil.rmtree(path, ignore_errors=True)


def settings_of(config: dict[str, Any]) -> dict[str, Any]:
    """The settings of a member's configuration; the rest is for this package."""
    return {name: value for name, value in config.items() if not name.startswith("_")}


class Exchanges(PopulationBasedTraining):
    """Notes what members are to take over when it is decided: some of them wait for a worker.
    Members do not wait for one that has ended."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(**settings)
        self._folder = folder
        #: The exchange that is being decided.
        self._rows: list[dict[str, Any]] = []

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        self._rows = []
        decision = super().on_trial_result(tune_controller, trial, result)
        write_exchange(self._folder, self._rows)
        return str(decision)

    def _exploit(self, tune_controller: Any, trial: Any, trial_to_clone: Any) -> None:
        super()._exploit(tune_controller, trial, trial_to_clone)
        number, there = number_of(trial.trial_id), Path(trial.checkpoint.path)
        self._rows.append(fetch(self._folder, number, there, settings_of(trial.config)))

    def on_trial_complete(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> None:
        super().on_trial_complete(tune_controller, trial, result)
        self._go_on_without(tune_controller, trial)

    def on_trial_error(self, tune_controller: Any, trial: Any) -> None:
        super().on_trial_error(tune_controller, trial)
        self._go_on_without(tune_controller, trial)

    def _go_on_without(self, tune_controller: Any, gone: Any) -> None:
        """Tune exchanges when the last member reports, but the last one may end instead."""
        left: Any = self._trial_state[gone]
        # Nobody waits for it, and nobody takes over from it.
        left.last_train_time, left.last_score = self._next_perturbation_sync, None
        others = [trial for trial in tune_controller.get_live_trials() if trial is not gone]
        states: list[Any] = [self._trial_state[trial] for trial in others]
        if states and all(s.last_train_time >= self._next_perturbation_sync for s in states):
            self.on_trial_result(tune_controller, others[0], states[0].last_result)
