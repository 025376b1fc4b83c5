"""No test hangs for ever: after its limit it fails where it stands. One that does not even hear of
that, because it waits inside C code, ends its process some time later, with the stacks of all
threads (`faulthandler_timeout` of pyproject.toml).

The limit is many times what the slowest test takes on an idle machine: it is there for what would
never end, and says nothing about speed. `@pytest.mark.limit(seconds)` sets another one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

SECONDS = 900.0
#: These take as long as they take.
FREE = ("long", "perf")


def limit_of(item: pytest.Item) -> float:
    """Seconds that a test may take; 0 is as many as it likes."""
    if any(item.get_closest_marker(name) for name in FREE):
        return 0.0
    marker = item.get_closest_marker("limit")
    return float(marker.args[0]) if marker else SECONDS


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Fails what takes longer."""
    if seconds <= 0 or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        pytest.fail(f"it was not over after {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
