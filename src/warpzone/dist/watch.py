"""Which rank of this machine ended.

An exchange with a rank that ended fails at once, and one that was stopped fails after
`--rank-timeout`. But a rank may be far from its next exchange, and the exchange does not say whose
fault it is.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from subprocess import Popen

import psutil

#: Seconds between two looks.
EVERY = 0.5
#: Seconds in which a rank that is about to fail by itself can say so.
GRACE = 5.0


def found(sentence: Callable[[], str], seconds: float) -> str:
    """A sentence that may take a moment to become true; empty if it does not."""
    ends = time.monotonic() + seconds
    while not (text := sentence()) and time.monotonic() < ends:
        time.sleep(0.05)
    return text


class Peers:
    """Ranks of this machine that somebody else started."""

    def __init__(self, pids: Mapping[int, int]) -> None:
        """pids: by rank, this one left out."""
        try:
            self._ranks = {rank: psutil.Process(pid) for rank, pid in sorted(pids.items())}
        except psutil.Error:
            # In containers of their own they do not see each other.
            self._ranks = {}

    def sentence(self) -> str:
        """Which rank ended; empty if none did."""
        gone = (rank for rank, process in self._ranks.items() if not _runs(process))
        rank = next(gone, None)
        return "" if rank is None else f"rank {rank} is gone"


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


class Watch:
    """A thread of a rank that this package started. The first of a machine looks at the processes
    that it started, the others at that one, their parent."""

    def __init__(
        self,
        started: Sequence[Popen[bytes]],
        lost: Callable[[str], None],
        *,
        first: int = 0,
        child: bool = True,
    ) -> None:
        """lost: called from the thread with a sentence about the rank that is lost; first: the
        first rank of this machine; child: whether it is this one's parent."""
        self._started = list(started)
        self._first = first
        self._parent = os.getppid() if child else 0
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
        for rank, process in enumerate(self._started, self._first + 1):
            code = process.poll()
            if code is not None and code < 0:
                return f"rank {rank} was killed by {signal.Signals(-code).name}"
            if code:
                return f"rank {rank} ended with exit code {code}"
        if self._parent and os.getppid() != self._parent:
            return f"rank {self._first} is gone"
        return ""

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            if text := self.sentence():
                # The next exchange of the main thread fails, and that says more about the run.
                if not self._over.wait(GRACE):
                    self._lost(text)
                return
