"""A line that shows that something is loaded, for people who wait in front of a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

EVERY = 1.0
#: Back to the beginning of the line, and nothing on it.
CLEAR = "\r\x1b[K"


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Says on a terminal what is loaded and for how long already, until the block ends. Nothing
    elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    done, began = threading.Event(), time.monotonic()

    def tell() -> None:
        sys.stderr.write(f"{CLEAR}{what} · {time.monotonic() - began:.0f} s")
        sys.stderr.flush()

    def ticking() -> None:
        while not done.wait(EVERY):
            tell()

    tell()
    thread = threading.Thread(target=ticking, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        sys.stderr.write(CLEAR)
        sys.stderr.flush()
