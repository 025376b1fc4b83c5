"""Calls a function at intervals, in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Ticker:
    """Calls a function every `interval` seconds until closed. An OSError is passed to `failed`
    and ends the calls; the run continues."""

    def __init__(
        self,
        name: str,
        interval: float,
        call: Callable[[], None],
        failed: Callable[[OSError], None],
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
            except OSError as error:
                self._failed(error)
                return

    def close(self) -> None:
        """Stops, and waits for a call in progress."""
        self._end.set()
        self._thread.join()
