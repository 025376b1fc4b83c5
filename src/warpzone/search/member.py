"""A member of a population: a Ray Tune trainable whose steps are sessions of training, and whose
checkpoints are ours. A member that takes over another one's weights goes on in a new run, begun
from that one's checkpoint with settings of its own; so every run has one line of descent."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ray import tune

from warpzone.observers.make import make_observers
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.observers.progress import Progress
from warpzone.run.checkpoints import SUFFIXES, Checkpoints
from warpzone.run.files import append_text
from warpzone.run.names import CHECKPOINTS, EVALS
from warpzone.run.reader import is_run, read_rows
from warpzone.search.lineage import read_member
from warpzone.search.objective import points_of
from warpzone.search.space import read_space
from warpzone.search.standing import values
from warpzone.search.takeover import (
    TOLD,
    begin,
    incoming,
    member_file,
    number_of,
    settings_of,
    take_over,
)
from warpzone.search.trial import Silent
from warpzone.train.loop import Result, Run
from warpzone.train.session import train
from warpzone.train.stopping import Stop

#: Keys of a member's configuration that are no settings.
FILE, FOLDER, EVERY, THREADS = "_space", "_folder", "_every", "_threads"
#: How many sessions a member of a population that goes on has reported when it first reports.
REPORT = "_report"


class Until(Observer):
    """Ends a session at a step."""

    def __init__(self, step: int) -> None:
        self._step = step

    def started(self, run: ObservedRun) -> None:
        # Killed after its last update, before its value was written down.
        self._look(run)

    def between(self, run: ObservedRun, progress: Progress) -> None:
        self._look(run)

    def _look(self, run: ObservedRun) -> None:
        if run.global_step >= self._step:
            run.stop("members exchange weights")


class Member(tune.Trainable):
    """Trains from one exchange to the next."""

    def setup(self, config: dict[str, Any]) -> None:
        import torch

        torch.set_num_threads(int(config[THREADS]))
        self.space = read_space(Path(config[FILE]))
        self.folder = Path(config[FOLDER])
        self.number = number_of(str(self.trial_id))
        self.file = member_file(self.folder, self.number)
        self.settings = settings_of(config)
        self.every = int(config[EVERY])
        self.report = int(config[REPORT])
        rows = read_member(self.file)
        #: The run it trains in; one that was killed goes on in the last.
        self.run = (
            str(rows[-1]["run"]) if rows else begin(self.folder, self.number, "", 0, self.settings)
        )
        self.global_step = int(rows[-1]["step"]) if rows else 0

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """A process that is there already becomes another member, which saves its start."""
        self.setup(new_config)
        return True

    # --- Ray's side -------------------------------------------------------------------------------
    def step(self) -> dict[str, Any]:
        if self.iteration == 0 and (kept := self._kept()) is not None:
            return kept
        target = (self.global_step // self.every + 1) * self.every
        run = self._train(target)
        self.global_step = run.global_step
        points = points_of(read_rows(run.folder.path, EVALS))
        value = self.space.objective.value(points[-1:])
        config = run.config
        over = self.global_step + config.steps_per_update > config.max_steps
        # It ended before its time: by another limit, or because enough is cleared.
        over = over or self.global_step < target
        row = {"step": self.global_step, "value": value, "settings": self.settings, "done": over}
        self._note({"event": "value", "run": self.run, **row})
        return _result(row)

    def _kept(self) -> dict[str, Any] | None:
        """What it reported before the population was stopped and the others have yet to."""
        rows = values(read_member(self.file))
        if rows and (rows[-1]["done"] or len(rows) >= self.report > 0):
            return _result(rows[-1])
        return None

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Our newest checkpoint, whole, and whose it is."""
        checkpoints = Checkpoints(self.folder / self.run / CHECKPOINTS)
        stem = checkpoints.stems()[0]
        for suffix in SUFFIXES:
            shutil.copy2(checkpoints.folder / (stem + suffix), checkpoint_dir)
        told = {"run": self.run, "step": self.global_step, "stem": stem}
        (Path(checkpoint_dir) / TOLD).write_text(json.dumps(told))

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Its own: it goes on where its run is. Another member's: a new run begins there."""
        there = Path(checkpoint)
        told = json.loads((there / TOLD).read_text())
        rows = read_member(self.file)
        if told["run"] in {row["run"] for row in rows}:
            return
        last = [row for row in rows if row["event"] == "begin"][-1]
        same = (last["parent"], last["settings"]) == (told["run"], self.settings)
        if same and last["step"] == told["step"]:
            self.run = last["run"]
        else:
            self.run = take_over(self.folder, self.number, there, self.settings)
        self.global_step = int(told["step"])

    # --- our side ---------------------------------------------------------------------------------
    def _note(self, row: dict[str, Any]) -> None:
        append_text(self.file, json.dumps(row) + "\n")

    def _train(self, target: int) -> Run:
        config = self.space.config(self.settings).replace(
            seed=self.space.base.seed + self.number,
            runs_dir=str(self.folder),
            run_name=self.run,
            num_threads=int(self.config[THREADS]),
        )
        there = self.folder / self.run
        given = incoming(self.folder, self.number)
        if Checkpoints(there / CHECKPOINTS).stems() or not self._has_parent():
            config = config.replace(resume="auto" if is_run(there) else config.resume)
        else:
            # Killed before its first checkpoint, it begins again.
            shutil.rmtree(there, ignore_errors=True)
            # Settings differ, which is what members are for; the network does not.
            config = config.replace(resume=str(given), resume_relax_match=True)
        runs: list[Run] = []

        def learn(run: Run) -> Result:
            runs.append(run)
            with Silent(run.config, self.run) as progress:
                return run.train(progress)

        train(config, lambda made: [*make_observers(made), Until(target)], Stop(), learn)
        shutil.rmtree(given, ignore_errors=True)
        return runs[-1]

    def _has_parent(self) -> bool:
        rows = read_member(self.file)
        return any(
            row["event"] == "begin" and row["parent"] for row in rows if row["run"] == self.run
        )


def _result(row: dict[str, Any]) -> dict[str, Any]:
    """What Ray is told of a session."""
    return {"value": row["value"], "global_step": row["step"], "done": row["done"]}
