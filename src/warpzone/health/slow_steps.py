"""Detects slow steps: several within a short time trigger a dump of all stacks."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

from warpzone.config.health import HealthConfig


class SlowSteps:
    """Counts steps slower than `--step-timeout`. When more than `--slow-step-trace-threshold` of
    them fall into `--slow-step-trace-window` seconds, `trace` is called once; counting restarts
    after another window, so that a run that is slow for hours does not fill the disk with equal
    stacks."""

    def __init__(
        self,
        config: HealthConfig,
        trace: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = config.step_timeout
        self._threshold = config.slow_step_trace_threshold
        self._window = config.slow_step_trace_window
        self._trace = trace
        self._now = now
        self._slow: deque[float] = deque()
        #: Nothing is counted before this time.
        self._quiet = -math.inf

    def add(self, seconds: float) -> None:
        """Records the duration of a step."""
        if seconds <= self._limit:
            return
        now = self._now()
        if now < self._quiet:
            return
        self._slow.append(now)
        while now - self._slow[0] > self._window:
            self._slow.popleft()
        if len(self._slow) > self._threshold:
            count = len(self._slow)
            self._slow.clear()
            self._quiet = now + self._window
            self._trace(
                f"{count} steps of all lanes took longer than {self._limit:g} s within "
                f"{self._window:g} s, the last one {seconds:.3f} s"
            )
