"""A log that a flood does not fill: whoever is refused thousands of times a second would write a
line each time."""

from __future__ import annotations

import logging
import time

#: Lines of one kind in a while, and its seconds.
MOST, WHILE = 20, 10.0
#: Kinds that are remembered; there are some dozens.
MOST_KINDS = 1000


class Sparing(logging.Filter):
    """Lets only so many lines of a kind pass in a while; the next one says how many were left
    out. Kinds are told apart by the text before it is filled in."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[object, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Called by logging, which holds the handler's lock."""
        now = time.monotonic()
        if len(self._seen) > MOST_KINDS:
            self._seen.clear()
        began, count = self._seen.get(record.msg, (now, 0))
        left_out = 0
        if now - began >= WHILE:
            began, left_out, count = now, max(0, count - MOST), 0
        self._seen[record.msg] = began, count + 1
        if left_out:
            record.msg = f"{record.msg} (and {left_out} more before)"
        return count < MOST
