"""Periodic lines in `heartbeat.jsonl`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from warpzone.health.pulse import Pulse

#: Lines over which speed is measured.
WINDOW = 8


class Heartbeat:
    """Makes the lines; counters are read from the run when one is due."""

    def __init__(
        self,
        pulse: Pulse,
        counters: Callable[[], tuple[int, int]],
        write: Callable[[dict[str, Any]], None],
        health: Callable[[], dict[str, float]] = dict,
    ) -> None:
        """counters: updates and steps so far. health: memory, CPU use and threads of the
        process."""
        self._pulse = pulse
        self._counters = counters
        self._write = write
        self._health = health
        #: monotonic seconds, updates, steps
        self._past: deque[tuple[float, int, int]] = deque(maxlen=WINDOW)

    def beat(self, phase: str = "") -> None:
        """Writes a line; `phase` replaces that of the pulse."""
        update, step = self._counters()
        now = time.monotonic()
        self._past.append((now, update, step))
        began, first_update, first_step = self._past[0]
        seconds = now - began
        message, self._pulse.message = self._pulse.message, ""
        self._write(
            {
                "timestamp": time.time(),
                "component": "train",
                "phase": phase or self._pulse.phase,
                "update": update,
                "global_step": step,
                "updates_per_sec": (update - first_update) / seconds if seconds else None,
                "steps_per_sec": (step - first_step) / seconds if seconds else None,
                "idle_seconds": now - self._pulse.last,
                "message": message,
                **self._health(),
            }
        )
