"""One trial: a run with the settings that were drawn, whose evaluations are reported and which ends
early where they say so."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.storages import RetryHeartbeatStaleTrialCallback

from warpzone.config import ConfigError, TrainConfig
from warpzone.env.backends.interface import BackendError
from warpzone.learn.learner import LearningError
from warpzone.observers.make import make_observers
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.observers.progress import Progress
from warpzone.run.journal import note
from warpzone.run.lock import BusyError
from warpzone.run.names import EVALS
from warpzone.run.reader import is_run, read_rows
from warpzone.run.sidecar import CheckpointError
from warpzone.search.budget import GPU_SECONDS, REASON, RUN, STEPS, Account, Caps
from warpzone.search.objective import points_of
from warpzone.search.space import Space
from warpzone.train.device import choose_device
from warpzone.train.estimate import refuse_impossible
from warpzone.train.ladder import out_of_memory
from warpzone.train.loop import Result, Run
from warpzone.train.session import train
from warpzone.train.stopping import Interrupted, Stop

if TYPE_CHECKING:
    from warpzone.eval.evaluate import Outcome

#: Seconds between two looks at what the whole sweep has spent.
LOOK_EVERY = 5.0
#: Folders that a trial may have: each further one is there because the last is in use.
MOST_FOLDERS = 10


class GivenBackError(Exception):
    """The trial ended before its time and waits for another worker, who goes on with it."""


class TrialFailedError(Exception):
    """The trial cannot be finished; the sweep goes on."""


class TrialObserver(Observer):
    """Reports evaluations to the study, and ends the run where the pruner or a limit says so."""

    def __init__(self, trial: optuna.Trial, space: Space, caps: Caps) -> None:
        self._trial = trial
        self._space = space
        self._caps = caps
        self._begun_at = 0
        self._gpu_before = 0.0
        self._looked = time.monotonic()
        self.pruned = False
        #: The limit of the sweep that is reached.
        self.exceeded = ""

    def started(self, run: ObservedRun) -> None:
        self._begun_at = run.global_step
        self._gpu_before = _gpu_seconds(run)
        # Evaluations that an earlier worker made and did not live to report.
        self._report(run)

    def evaluated(self, run: ObservedRun, outcomes: list[Outcome]) -> None:
        self._report(run)
        if self._trial.should_prune() and not self._complete(run):
            self.pruned = True
            run.stop("pruned")

    def between(self, run: ObservedRun, progress: Progress) -> None:
        if time.monotonic() - self._looked < LOOK_EVERY:
            return
        self._looked = time.monotonic()
        self._note_spent(run)
        account = Account(self._trial.study.get_trials(deepcopy=False))
        self.exceeded = account.exceeded(self._caps, datetime.now())
        if self._complete(run):
            self.exceeded = ""
        elif self.exceeded:
            run.stop(f"the sweep ends: {self.exceeded}")

    def ended(self, run: ObservedRun, reason: str) -> None:
        self._note_spent(run)

    def value(self, run: ObservedRun) -> float | None:
        """The objective of the run so far."""
        return self._space.objective.value(self._points(run))

    def _points(self, run: ObservedRun) -> list[Any]:
        return points_of(read_rows(run.folder.path, EVALS))

    def _report(self, run: ObservedRun) -> None:
        points = self._points(run)
        known = self._trial.storage.get_trial(self._trial._trial_id).intermediate_values
        for count in range(1, len(points) + 1):
            step = self._planned(points[count - 1][0])
            value = self._space.objective.value(points[:count])
            if value is not None and step not in known:
                self._trial.report(value, step)
        self._note_spent(run)

    def _planned(self, step: int) -> int:
        """The step an evaluation was planned for: those of trials whose rollouts differ in size are
        made at different ones, and pruners compare equal ones."""
        every = self._space.base.eval_interval
        return max(1, round(step / every)) * every if every else step

    def _complete(self, run: ObservedRun) -> bool:
        """Whether the run would not go on anyway."""
        return run.global_step + run.config.steps_per_update > run.config.max_steps

    def _note_spent(self, run: ObservedRun) -> None:
        self._trial.set_user_attr(STEPS, run.global_step - self._begun_at)
        self._trial.set_user_attr(GPU_SECONDS, _gpu_seconds(run) - self._gpu_before)


def _gpu_seconds(run: ObservedRun) -> float:
    return run.budget.gpu_seconds if isinstance(run, Run) else 0.0


class Silent(Progress):
    """The display of a trial: what is said goes to the run's log alone."""

    def update(self, row: dict[str, Any]) -> None:
        """Shows nothing."""

    def say(self, text: str) -> None:
        note(text)


def run_trial(
    trial: optuna.Trial, space: Space, folder: Path, *, caps: Caps, threads: int, stop: Stop
) -> float:
    """Trains with the settings that are drawn here, and returns the objective's value. Raises
    TrialPruned, GivenBackError, TrialFailedError, or OSError where the folder cannot be written."""
    drawn: dict[str, Any] = {}
    for parameter in space.parameters:
        if parameter.holds(drawn):
            drawn[parameter.name] = parameter.suggest(trial)
    for name in (STEPS, GPU_SECONDS):
        trial.set_user_attr(name, 0)
    watcher = TrialObserver(trial, space, caps)
    try:
        config = space.config(drawn)
        config = config.replace(num_threads=config.num_threads or threads, runs_dir=str(folder))
        refuse_impossible(config, choose_device(config))
        run = _train(trial, config, watcher, stop)
    except ConfigError as error:
        # The sampler learns that such settings lead nowhere.
        trial.set_user_attr(REASON, f"refused: {error}")
        raise optuna.TrialPruned(f"refused: {error}") from error
    except Interrupted as error:
        raise GivenBackError("interrupted") from error
    except (LearningError, CheckpointError, BackendError) as error:
        raise _failed(trial, str(error)) from error
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        raise _failed(trial, "memory ran out") from error
    if watcher.pruned:
        raise optuna.TrialPruned(f"pruned at step {run.global_step:,}")
    if watcher.exceeded:
        raise GivenBackError(watcher.exceeded)
    value = watcher.value(run)
    if value is None:
        raise _failed(trial, "it has no evaluation")
    return value


def _failed(trial: optuna.Trial, reason: str) -> TrialFailedError:
    trial.set_user_attr(REASON, reason)
    return TrialFailedError(reason)


def _train(trial: optuna.Trial, config: TrainConfig, watcher: TrialObserver, stop: Stop) -> Run:
    """Trains in the folder of the trial, or of the one that this one repeats: there it is resumed.
    A folder that another process still trains in is left to it."""
    frozen = trial.study.get_trials(deepcopy=False)[trial.number]
    first = RetryHeartbeatStaleTrialCallback.retried_trial_number(frozen)
    stem = f"trial-{trial.number if first is None else first:04d}"
    for count in range(1, MOST_FOLDERS + 1):
        name = stem if count == 1 else f"{stem}-{count}"
        trial.set_user_attr(RUN, name)
        there = is_run(Path(config.runs_dir) / name)
        own = config.replace(run_name=name, resume="auto" if there else "never")
        try:
            return _learn(own, lambda made: [*make_observers(made), watcher], stop)
        except BusyError:
            continue
    raise TrialFailedError(f"{MOST_FOLDERS} folders of {stem} are in use")


def _learn(config: TrainConfig, watch: Callable[[TrainConfig], list[Observer]], stop: Stop) -> Run:
    runs: list[Run] = []

    def learn(run: Run) -> Result:
        runs.append(run)
        with Silent(run.config, run.folder.path.name) as progress:
            return run.train(progress)

    train(config, watch, stop, learn)
    return runs[-1]
