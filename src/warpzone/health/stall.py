"""Detects a run without progress, writes the stacks of all threads, and can end the run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from warpzone.config.health import HealthConfig
from warpzone.health.pulse import PAUSED, Pulse

#: Seconds that a stalled run has to end by itself before the process exits. A run's files survive
#: this at any moment.
GRACE = 30.0
FAILED = 1


class Stall:
    """Checks the pulse; called by a dedicated thread."""

    def __init__(
        self,
        config: HealthConfig,
        pulse: Pulse,
        report: Callable[[str], None],
        *,
        leave: Callable[[int], None] = os._exit,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """report: called with one sentence for each stall, and again after each further
        `--stall-timeout`."""
        self._timeout = config.stall_timeout
        self._fail = config.fail_on_stall
        self._pulse = pulse
        self._report = report
        self._leave = leave
        self._now = now
        self._reported_at = -float("inf")
        self._failed_at: float | None = None
        #: The reason with which the run ends as soon as it makes progress.
        self.verdict = ""

    def look(self) -> None:
        """Reports a stall, and ends a run that did not end when asked to."""
        now = self._now()
        if self._failed_at is not None and now - max(self._failed_at, self._pulse.last) > GRACE:
            self._report(f"the run did not end within {GRACE:g} s; the process exits")
            self._leave(FAILED)
        idle = now - self._pulse.last
        if self._timeout == 0 or idle <= self._timeout or self._pulse.phase == PAUSED:
            return
        if now - self._reported_at <= self._timeout:
            return
        self._reported_at = now
        sentence = f"no progress for {idle:.0f} s in phase {self._pulse.phase}"
        self._report(sentence)
        if self._fail and self._failed_at is None:
            self._failed_at = now
            self.verdict = f"{sentence} (--fail-on-stall)"
