"""A sign that something slow is under way, for people who wait."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

#: `0` shows nothing anywhere, `1` shows lines also where there is no terminal.
VARIABLE = "WARPZONE_PROGRESS"
EVERY = 1.0
#: Back to the beginning of the line, and nothing on it.
CLEAR = "\r\x1b[K"

_hushed: ContextVar[bool] = ContextVar("hushed", default=False)


@contextmanager
def hushed(quiet: bool = True) -> Iterator[None]:
    """Within the block nothing is shown."""
    before = _hushed.set(quiet or _hushed.get())
    try:
        yield
    finally:
        _hushed.reset(before)


def style() -> Literal["terminal", "lines", ""]:
    """How something is shown: a line that changes on a terminal, lines where they are asked for,
    or not at all."""
    asked = os.environ.get(VARIABLE, "")
    if _hushed.get() or asked == "0":
        return ""
    # A program may have no standard error, or have closed it.
    with contextlib.suppress(AttributeError, ValueError):
        if sys.stderr.isatty():
            return "terminal"
    return "lines" if asked == "1" else ""


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Says on a terminal what is done and for how long already, until the block ends. Elsewhere
    nothing, or when it begins and ends if that is asked for."""
    shown, began = style(), time.monotonic()
    if not shown:
        yield
    elif shown == "lines":
        _write(f"warpzone: {what}\n")
        try:
            yield
        finally:
            _write(f"warpzone: {what}: {time.monotonic() - began:.1f} s\n")
    else:
        with _ticking(what, began):
            yield


@contextmanager
def _ticking(what: str, began: float) -> Iterator[None]:
    done = threading.Event()

    def tell() -> None:
        _write(f"{CLEAR}{what} · {time.monotonic() - began:.0f} s")

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
        _write(CLEAR)


def _write(text: str) -> None:
    # A terminal that has gone must not end what it showed.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(text)
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
