"""A line that shows that something slow is under way, for people who wait at a terminal."""

from __future__ import annotations

import importlib
import os
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


def load_torch(*also: str) -> None:
    """Imports PyTorch, and modules of it that take as long again; says so while it takes."""
    missing = [name for name in ("torch", *also) if name not in sys.modules]
    if not missing:
        return
    # Read once, when PyTorch loads its OpenMP runtime. By default its threads wait for each other
    # in busy loops, which beside other busy processes takes the cores from the thread waited for.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with loading("loading PyTorch"):
        for name in missing:
            importlib.import_module(name)
