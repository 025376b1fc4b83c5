"""What a process that makes an environment writes down: one marker on each line, with the time,
and the same as JSON in a file of all processes (`events.py`).

The last line of the file of a worker that hangs says where it hangs; its stacks follow when the
parent asks for them.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from warpzone.env.backends.events import Event, append

#: The signal that makes a worker write its stacks into its file.
STACK_SIGNAL = getattr(signal, "SIGUSR1", None)


class Diagnostics:
    """Markers of one process. Without a file they go nowhere."""

    def __init__(
        self, file: IO[str] | None = None, folder: Path | None = None, env: int | None = None
    ) -> None:
        """env: the environment that the process makes, counted from 1."""
        self._file = file
        self._env = env
        #: Shared with the other workers of the same parent.
        self.folder = folder

    @classmethod
    def open(cls, folder: str, index: int, env: int) -> Diagnostics:
        """The file of worker `index`, which makes environment `env`; its process writes its stacks
        there when it crashes or is asked to."""
        file = log_of(folder, index, os.getpid()).open("a", encoding="utf-8")
        faulthandler.enable(file, all_threads=True)
        if STACK_SIGNAL is not None:
            faulthandler.register(STACK_SIGNAL, file, all_threads=True)
        return cls(file, Path(folder), env)

    def mark(self, marker: str) -> None:
        """One line: the time and the marker."""
        if self._file is not None:
            now = time.time()
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
            self._file.write(f"{stamp}.{int(now % 1 * 1000):03d}Z {marker}\n")
            self._file.flush()
            if self.folder is not None:
                append(self.folder, Event("marker", marker, self._env))

    def first(self, what: str) -> bool:
        """Whether none of the workers of the same parent has asked this before."""
        if self.folder is None:
            return True
        try:
            (self.folder / what).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    @contextlib.contextmanager
    def failures(self) -> Iterator[None]:
        """Writes down the error that leaves the block, on one line."""
        with contextlib.ExitStack() as stack:
            stack.push(self._failed)
            yield

    def _failed(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if kind is not None:
            sentence = " ".join(f"{kind.__name__}: {error}".split())
            self.mark(f"failed {sentence}")


def new_folder(parent: str = "") -> Path:
    """`mario_env_diag_<pid>_<ts>` below `parent`, by default where temporary files are."""
    base = Path(parent) if parent else Path(tempfile.gettempdir())
    base.mkdir(parents=True, exist_ok=True)
    stamp = time.time_ns() // 1_000_000
    while True:
        path = base / f"mario_env_diag_{os.getpid()}_{stamp}"
        try:
            path.mkdir()
        except FileExistsError:
            stamp += 1
        else:
            return path


def log_of(folder: str, index: int, pid: int) -> Path:
    """The file of one process of worker `index`."""
    return Path(folder) / f"env_init_idx{index}_pid{pid}.log"


def last_marker(folder: Path, index: int) -> str:
    """The last marker of the newest process of a worker; empty when there is none."""
    files = sorted(folder.glob(f"env_init_idx{index}_pid*.log"), key=lambda p: p.stat().st_mtime)
    if not files:
        return ""
    marked = [line for line in files[-1].read_text(encoding="utf-8").splitlines() if "Z " in line]
    return marked[-1].partition("Z ")[2] if marked else ""
