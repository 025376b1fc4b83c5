"""Progress and limits of a run."""

from __future__ import annotations

import math
import os
import time

from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import ConfigError, TrainConfig

#: A longer run on a CPU is more often a mistake than intended.
CPU_HOURS = 12.0


class EndlessError(ConfigError):
    """A run that would take too long on this machine."""


class Budget:
    """Counts steps, updates, time and GPU time, those of earlier sessions of the run included."""

    def __init__(self, config: TrainConfig, *, on_gpu: bool, ranks: Ranks = ALONE) -> None:
        self._config = config
        self._on_gpu = on_gpu
        self._ranks = ranks
        self.max_steps = config.max_steps
        self.global_step = 0
        self.global_update = 0
        self.gpu_seconds = 0.0
        #: The step that the run was resumed at; -1 for one that was not.
        self.resumed_at = -1
        #: The clock at which the run would have begun without pauses.
        self.started = time.perf_counter()
        self._charged = self._counted = self.started
        #: Seconds of the quickest update: evaluations, pauses and the first update take longer.
        self._update = 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self.started

    @property
    def progress(self) -> float:
        """The share of the steps that is done."""
        return self.global_step / self.max_steps

    def begin(self) -> None:
        """Starts counting GPU time, and the first update's."""
        self._charged = self._counted = time.perf_counter()

    def count_update(self) -> None:
        """An update is done."""
        before, self._counted = self._counted, time.perf_counter()
        self._update = min(self._update or math.inf, self._counted - before)
        self.global_step += self._config.steps_per_update
        self.global_update += 1

    def charge(self) -> None:
        """Adds the time since the last call, if it was that of GPUs."""
        now = time.perf_counter()
        if self._on_gpu:
            self.gpu_seconds += (now - self._charged) * self._ranks.size
        self._charged = now

    def spent(self, ahead: int = 0) -> bool:
        """Whether the budget is used up, or will be after `ahead` more updates."""
        config = self._config
        if config.max_cost_gpu_hours and self.gpu_seconds > config.max_cost_gpu_hours * 3600:
            return True
        # Ends at the update that is nearest to the limit.
        near = self.seconds + (ahead + 0.5) * self._update
        if config.max_time and near > config.max_time * 60:
            return True
        return self.global_step + (1 + ahead) * config.steps_per_update > self.max_steps

    def left(self, rate: float) -> float:
        """Seconds until the steps are done, at so many a second, or the time is up, whatever comes
        first."""
        steps = max(0, self.max_steps - self.global_step) / rate
        if not self._config.max_time:
            return steps
        return min(steps, max(0.0, self._config.max_time * 60 - self.seconds))

    def refuse_endless(self, rate_here: float) -> None:
        """Called after the second update, when the speed is known: refuses a run of days on the
        CPU."""
        if self.global_update != 2 or self._on_gpu:
            return
        rate = self._ranks.told(lambda: rate_here)
        hours = self.left(rate) / 3600
        if hours > CPU_HOURS and os.environ.get("MARIO_ALLOW_CPU_AUTO") != "1":
            raise EndlessError(
                f"at {rate:.0f} steps/s this run would take {hours:.0f} hours on the CPU; lower "
                "--max-steps, choose a smaller network, or set MARIO_ALLOW_CPU_AUTO=1 to continue"
            )
