"""The log of a run: what is said on the terminal, with the time, in `logs/train.log`."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path
from typing import TextIO

FOLDER = "logs"
LOG = "train.log"

_lock = threading.Lock()
_file: TextIO | None = None


def open_log(run: Path) -> None:
    """From now on `note` writes to this run's log, after what is there already."""
    global _file
    close_log()
    with _lock, contextlib.suppress(OSError):
        folder = run / FOLDER
        folder.mkdir(exist_ok=True)
        _file = (folder / LOG).open("a", buffering=1, errors="replace")


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
