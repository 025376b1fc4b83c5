"""The pulse of a run: its phase, its last progress, and its slow steps."""

from __future__ import annotations

import time
from collections.abc import Callable

#: The run is paused by a command: not a stall.
PAUSED = "pause"


class Pulse:
    """Written by the threads that collect and learn, read by the one that watches. Each write is a
    plain assignment: a beat costs well under a microsecond, and a reader that sees the phase of one
    moment and the time of the next does no harm."""

    def __init__(self) -> None:
        #: collect, learn, eval, checkpoint, pause, and at the end done, interrupt or exception.
        self.phase = "start"
        #: time.monotonic() of the last progress.
        self.last = time.monotonic()
        #: The newest hint or warning, until a heartbeat has carried it.
        self.message = ""
        #: Called with the seconds of every step of the current rollout.
        self.on_step: Callable[[float], None] | None = None
        self._step_began = self.last

    def enter(self, phase: str) -> None:
        """Enters a phase."""
        self.phase = phase
        self.beat()
        if phase == "collect":
            self._step_began = self.last

    def beat(self) -> None:
        """Records progress."""
        self.last = time.monotonic()

    def step(self) -> None:
        """Records that all lanes have made a step of the current rollout."""
        began = self._step_began
        self.beat()
        self._step_began = self.last
        if self.on_step is not None:
            self.on_step(self.last - began)
