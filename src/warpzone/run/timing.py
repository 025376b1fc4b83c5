"""Every second has an owner."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Adds up wall-clock seconds by owner. Not shared between threads: each has its own."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def time(self, owner: str) -> Iterator[None]:
        """Counts the block for `owner`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[owner] += time.perf_counter() - start

    def take(self) -> dict[str, float]:
        """The sums so far; they start again at zero."""
        taken, self.seconds = dict(self.seconds), defaultdict(float)
        return taken
