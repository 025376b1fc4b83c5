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
from warpzone.search.lineage import MEMBERS, read_member
from warpzone.search.objective import points_of
from warpzone.search.space import read_space
from warpzone.search.trial import Silent
from warpzone.train.loop import Result, Run
from warpzone.train.session import train
from warpzone.train.stopping import Stop

#: Beside the files of a checkpoint that is handed to Ray.
TOLD = "member.json"
#: Keys of a member's configuration that are no settings.
FILE, FOLDER, EVERY, THREADS = "_space", "_folder", "_every", "_threads"


class Until(Observer):
    """Ends a session at a step."""

    def __init__(self, step: int) -> None:
        self._step = step

    def between(self, run: ObservedRun, progress: Progress) -> None:
        if run.global_step >= self._step:
            run.stop("members exchange weights")


class Member(tune.Trainable):
    """Trains from one exchange to the next."""

    def setup(self, config: dict[str, Any]) -> None:
        import torch

        torch.set_num_threads(int(config[THREADS]))
        self.space = read_space(Path(config[FILE]))
        self.folder = Path(config[FOLDER])
        #: Ray numbers the trials of an experiment.
        self.number = int(str(self.trial_id).rsplit("_", 1)[-1])
        self.file = self.folder / MEMBERS / f"{self.number:02d}.jsonl"
        self.settings = self._settings(config)
        self.every = int(config[EVERY])
        rows = read_member(self.file)
        #: The run it trains in; one that was killed goes on in the last.
        self.run = str(rows[-1]["run"]) if rows else self._begin("", 0)
        #: The checkpoint to begin a new run from.
        self.incoming: Path | None = None
        self.global_step = int(rows[-1]["step"]) if rows else 0

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """A process that is there already becomes another member, which saves its start."""
        self.setup(new_config)
        return True

    def _settings(self, config: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in config.items() if not name.startswith("_")}

    # --- Ray's side -------------------------------------------------------------------------------
    def step(self) -> dict[str, Any]:
        target = (self.global_step // self.every + 1) * self.every
        run = self._train(target)
        self.global_step = run.global_step
        points = points_of(read_rows(run.folder.path, EVALS))
        value = self.space.objective.value(points[-1:])
        row = {"step": self.global_step, "value": value, "settings": self.settings}
        self._note({"event": "value", "run": self.run, **row})
        config = run.config
        over = self.global_step + config.steps_per_update > config.max_steps
        # It ended before its time: by another limit, or because enough is cleared.
        over = over or self.global_step < target
        return {"value": value, "global_step": self.global_step, "done": over}

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
        if not (same and last["step"] == told["step"]):
            self.run = self._begin(told["run"], int(told["step"]))
        # Ray removes its copy; the run is made from this one.
        self.incoming = self.folder / f".incoming-{self.number:02d}"
        shutil.rmtree(self.incoming, ignore_errors=True)
        shutil.copytree(there, self.incoming)
        self.global_step = int(told["step"])

    # --- our side ---------------------------------------------------------------------------------
    def _begin(self, parent: str, step: int) -> str:
        begun = [row for row in read_member(self.file) if row["event"] == "begin"]
        stem = f"member-{self.number:02d}"
        run = f"{stem}-{len(begun) + 1}" if begun else stem
        row = {"event": "begin", "run": run, "parent": parent or None, "step": step}
        self._note({**row, "settings": self.settings})
        return run

    def _note(self, row: dict[str, Any]) -> None:
        append_text(self.file, json.dumps(row) + "\n")

    def _train(self, target: int) -> Run:
        config = self.space.config(self.settings).replace(
            seed=self.space.base.seed + self.number,
            runs_dir=str(self.folder),
            run_name=self.run,
            num_threads=int(self.config[THREADS]),
        )
        if is_run(self.folder / self.run):
            config = config.replace(resume="auto")
        elif self.incoming is not None:
            # Settings differ, which is what members are for; the network does not.
            config = config.replace(resume=str(self.incoming), resume_relax_match=True)
        runs: list[Run] = []

        def learn(run: Run) -> Result:
            runs.append(run)
            with Silent(run.config, self.run) as progress:
                return run.train(progress)

        train(config, lambda made: [*make_observers(made), Until(target)], Stop(), learn)
        if self.incoming is not None:
            shutil.rmtree(self.incoming, ignore_errors=True)
            self.incoming = None
        return runs[-1]
