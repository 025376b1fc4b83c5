"""The log of a run: messages of the terminal, with the time, in `logs/train.log`."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from typing import TextIO

from warpzone.run.files import open_plain, own_folder
from warpzone.run.names import LOG, LOGS

_lock = threading.Lock()
_file: TextIO | None = None


def open_log(run: Path) -> None:
    """Opens this run's log for `note`, which appends to it."""
    global _file
    close_log()
    with _lock, contextlib.suppress(OSError):
        folder = run / LOGS
        own_folder(folder)
        handle = open_plain(folder / LOG, os.O_WRONLY | os.O_APPEND)
        _file = os.fdopen(handle, "a", buffering=1, errors="replace")


def note(text: str) -> None:
    """Adds lines; does nothing if there is no log or no space: the log never ends a run."""
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    with _lock, contextlib.suppress(OSError):
        if _file is not None:
            _file.write("".join(f"{when} {line}\n" for line in text.splitlines()))


def close_log() -> None:
    """Closes the log."""
    global _file
    with _lock, contextlib.suppress(OSError):
        if _file is not None:
            file, _file = _file, None
            file.close()


def say(text: str) -> None:
    """Writes a line to stderr and to the log; does nothing if stderr is closed."""
    note(text)
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        silence()


def silence() -> None:
    """Redirects further output to /dev/null: a closed terminal must not change the exit status."""
    with contextlib.suppress(OSError):
        nobody = os.open(os.devnull, os.O_WRONLY)
        for handle in (1, 2):
            os.dup2(nobody, handle)
        os.close(nobody)
