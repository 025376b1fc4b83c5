"""What a sweep has spent, over all its workers, and what is left to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState

#: What a trial's worker notes in the storage while it trains.
STEPS, GPU_SECONDS, SURPLUS, REASON, RUN = "steps", "gpu_seconds", "surplus", "reason", "run"
ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)


@dataclass(frozen=True)
class Caps:
    """Limits of a whole sweep; 0 is none."""

    minutes: float = 0.0
    steps: int = 0
    gpu_hours: float = 0.0


@dataclass(frozen=True)
class Account:
    """A sweep's trials, as they were when they were read."""

    trials: Sequence[FrozenTrial]

    @property
    def steps(self) -> int:
        return int(self._sum(STEPS))

    @property
    def gpu_hours(self) -> float:
        return self._sum(GPU_SECONDS) / 3600

    def _sum(self, name: str) -> float:
        """Of all trials that have begun. One that waits to be tried again still has the notes of
        the last time."""
        begun = (trial for trial in self.trials if trial.state != TrialState.WAITING)
        return sum(float(trial.user_attrs.get(name, 0)) for trial in begun)

    def minutes(self, now: datetime) -> float:
        """Minutes in which at least one trial was running; breaks do not count."""
        spans = [
            (trial.datetime_start, trial.datetime_complete or now)
            for trial in self.trials
            if trial.datetime_start is not None
        ]
        seconds, end = 0.0, datetime.min
        for first, last in sorted(spans):
            seconds += max(0.0, (last - max(first, end)).total_seconds())
            end = max(end, last)
        return seconds / 60

    def exceeded(self, caps: Caps, now: datetime) -> str:
        """Which limit is reached, in words; empty if none is."""
        if caps.steps and self.steps >= caps.steps:
            return f"{self.steps:,} of {caps.steps:,} steps are spent"
        if caps.minutes and self.minutes(now) >= caps.minutes:
            return f"its {caps.minutes:g} minutes are over"
        if caps.gpu_hours and self.gpu_hours >= caps.gpu_hours:
            return f"{self.gpu_hours:.3g} of {caps.gpu_hours:g} GPU hours are spent"
        return ""

    @property
    def counted(self) -> list[FrozenTrial]:
        """The trials that count towards the number asked for: each once, however often it was tried
        again."""
        again = {
            number
            for trial in self.trials
            for number in RetryHeartbeatStaleTrialCallback.retry_history(trial)
        }
        return [
            trial
            for trial in self.trials
            if trial.number not in again and not trial.user_attrs.get(SURPLUS)
        ]

    @property
    def waiting(self) -> bool:
        """Whether a trial waits for a worker."""
        return any(trial.state == TrialState.WAITING for trial in self.trials)

    @property
    def running(self) -> int:
        """Trials that a worker has."""
        return sum(trial.state == TrialState.RUNNING for trial in self.trials)

    @property
    def ended(self) -> int:
        """Trials that are over, out of those that count."""
        return sum(trial.state in ENDED for trial in self.counted)
