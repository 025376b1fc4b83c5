"""A thread that notices ranks of this machine that ended, while this one computes.

An exchange with a rank that ended fails at once, and one that was stopped fails after
`--rank-timeout`. But a rank may be far from its next exchange.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from subprocess import Popen

#: Seconds between two looks.
EVERY = 0.5
#: Seconds in which a rank that is about to fail by itself can say so.
GRACE = 5.0


class Watch:
    """Of rank 0: looks at the processes that it started; of the others: at rank 0, their parent."""

    def __init__(self, started: Sequence[Popen[bytes]], lost: Callable[[str], None]) -> None:
        """lost: called from the thread with a sentence about the rank that is lost."""
        self._started = list(started)
        self._parent = os.getppid()
        self._lost = lost
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="ranks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops looking."""
        self._over.set()
        self._thread.join()

    def sentence(self) -> str:
        """Which rank ended, and how; empty if none did."""
        for rank, process in enumerate(self._started, 1):
            code = process.poll()
            if code is not None and code < 0:
                return f"rank {rank} was killed by {signal.Signals(-code).name}"
            if code:
                return f"rank {rank} ended with exit code {code}"
        if not self._started and os.getppid() != self._parent:
            return "rank 0 is gone"
        return ""

    def found(self, seconds: float) -> str:
        """`sentence`, which may take a moment to become true."""
        ends = time.monotonic() + seconds
        while not (text := self.sentence()) and time.monotonic() < ends:
            time.sleep(0.05)
        return text

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            if text := self.sentence():
                # The next exchange of the main thread fails, and that says more about the run.
                if not self._over.wait(GRACE):
                    self._lost(text)
                return
