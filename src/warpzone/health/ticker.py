"""Calls a function at intervals, in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

#: A full disk, no memory, and no memory for a library that is loaded late.
FAILURES = (OSError, MemoryError, ImportError)


def why(error: Exception) -> str:
    """What a failure says; where memory runs out, there is often nothing."""
    return str(error) or "there is no memory for it"


class Ticker:
    """Calls a function every `interval` seconds until closed. One of FAILURES is passed to
    `failed` and ends the calls; the run continues."""

    def __init__(
        self,
        name: str,
        interval: float,
        call: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._interval = interval
        self._call = call
        self._failed = failed
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._tick, name=name, daemon=True)
        self._thread.start()

    def _tick(self) -> None:
        while not self._end.wait(self._interval):
            try:
                self._call()
            except FAILURES as error:
                self._failed(error)
                return

    def close(self) -> None:
        """Stops, and waits for a call in progress."""
        self._end.set()
        self._thread.join()
