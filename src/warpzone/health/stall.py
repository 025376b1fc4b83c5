"""A run that does not get on: the stacks say where it hangs, and it can be ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from warpzone.config.health import HealthConfig
from warpzone.health.pulse import PAUSED, Pulse

#: Seconds that a stalled run has to get on, towards its end, before it is ended the hard way. Files
#: of a run bear that at any moment.
GRACE = 30.0
FAILED = 1


class Stall:
    """Looks at the pulse; told to look by a thread that does nothing else."""

    def __init__(
        self,
        config: HealthConfig,
        pulse: Pulse,
        report: Callable[[str], None],
        *,
        leave: Callable[[int], None] = os._exit,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """report: told one sentence for each stall, and once more for each `--stall-timeout` that
        it goes on."""
        self._timeout = config.stall_timeout
        self._fail = config.fail_on_stall
        self._pulse = pulse
        self._report = report
        self._leave = leave
        self._now = now
        self._reported_at = -float("inf")
        self._failed_at: float | None = None
        #: The sentence with which the run is to end, as soon as it gets on.
        self.verdict = ""

    def look(self) -> None:
        """Reports a stall, and ends a run that has not ended although it was told to."""
        now = self._now()
        if self._failed_at is not None and now - max(self._failed_at, self._pulse.last) > GRACE:
            self._report(f"the run did not end within {GRACE:g} s; leaving without it")
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
