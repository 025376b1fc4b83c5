"""The log of a run: what is said on the terminal, with the time, in `logs/train.log`."""

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
    """From now on `note` writes to this run's log, after what is there already."""
    global _file
    close_log()
    with _lock, contextlib.suppress(OSError):
        folder = run / LOGS
        own_folder(folder)
        handle = open_plain(folder / LOG, os.O_WRONLY | os.O_APPEND)
        _file = os.fdopen(handle, "a", buffering=1, errors="replace")


def note(text: str) -> None:
    """Adds lines; where there is no log or no room for it, nothing: a log ends no run."""
    when = time.strftime("%Y-%m-%d %H:%M:%S")
    with _lock, contextlib.suppress(OSError):
        if _file is not None:
            _file.write("".join(f"{when} {line}\n" for line in text.splitlines()))


def close_log() -> None:
    """Ends the log."""
    global _file
    with _lock, contextlib.suppress(OSError):
        if _file is not None:
            file, _file = _file, None
            file.close()


def say(text: str) -> None:
    """A line on stderr and in the log; where nobody is left to read it, nothing."""
    note(text)
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        silence()


def silence() -> None:
    """Sends what is still to be said to nobody: a terminal that is gone must not decide how the
    process ends."""
    with contextlib.suppress(OSError):
        nobody = os.open(os.devnull, os.O_WRONLY)
        for handle in (1, 2):
            os.dup2(nobody, handle)
        os.close(nobody)
