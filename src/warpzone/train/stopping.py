"""Signals end a run cleanly: they set a flag that is checked between two updates. A second
signal ends the process at once, which damages no file."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from warpzone.observers.progress import Progress
from warpzone.run.journal import silence

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST = "[train][warn] interrupted: finishing and saving the current update; repeat to exit now\n"
SHOW_CURSOR = "\x1b[?25h"


class Interrupted(Exception):  # noqa: N818 (what was asked for is no error)
    """A signal ended the run."""

    def __init__(self, signum: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(signum).name}")
        self.signum = signum

    @property
    def exit_code(self) -> int:
        """The exit code that shells use."""
        return 128 + self.signum


class Stop:
    """Whether a signal came, and which."""

    def __init__(self) -> None:
        self.signum = 0

    def __bool__(self) -> bool:
        return self.signum != 0

    def check(self) -> None:
        """Raises Interrupted if a signal came."""
        if self.signum:
            raise Interrupted(self.signum)

    def _handle(self, signum: int, _frame: FrameType | None) -> None:
        if self.signum:
            _write(SHOW_CURSOR if os.isatty(2) else "")
            os._exit(128 + signum)
        self.signum = signum
        _write(FIRST)


@contextlib.contextmanager
def signals() -> Iterator[Stop]:
    """Handles the signals while active. Only the main thread can; in others it does nothing."""
    stop = Stop()
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            # A signal that was ignored before (nohup) stays ignored.
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, stop._handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _write(text: str) -> None:
    # Not through sys.stderr: the signal may have come in the middle of a write to it.
    with contextlib.suppress(OSError):
        os.write(2, text.encode())


@contextlib.contextmanager
def survived() -> Iterator[None]:
    """A terminal that closes does not stop the run."""
    try:
        yield
    except OSError:
        silence()


class Quiet(Progress):
    """A progress display whose terminal may close."""

    def __enter__(self) -> Quiet:
        with survived():
            super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        with survived():
            super().__exit__(*error)

    def update(self, row: dict[str, Any]) -> None:
        """Shows the newest metrics."""
        with survived():
            super().update(row)

    def say(self, text: str) -> None:
        """Prints a sentence above the table."""
        with survived():
            super().say(text)
