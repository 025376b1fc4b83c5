"""The stacks of all threads, into a file."""

from __future__ import annotations

import faulthandler
import threading
import time
from pathlib import Path

FOLDER = "traces"


def dump(run: Path, stem: str, why: str) -> Path:
    """Writes `traces/<stem>_<timestamp>.log` in a run's folder. An older file stays."""
    folder = run / FOLDER
    folder.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path, again = folder / f"{stem}_{stamp}.log", 1
    while path.exists():
        again += 1
        path = folder / f"{stem}_{stamp}-{again}.log"
    with path.open("x") as file:
        file.write(f"{why}\n\nThreads, by the number that heads their stack:\n")
        for thread in threading.enumerate():
            file.write(f"0x{thread.ident or 0:016x} {thread.name}\n")
        file.write("\n")
        file.flush()
        faulthandler.dump_traceback(file, all_threads=True)
    return path
