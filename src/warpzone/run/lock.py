"""One process at a time trains in a run's folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from warpzone.config import ConfigError
from warpzone.run.files import open_plain

LOCK = ".lock"


class BusyError(ConfigError):
    """Another process is training in the folder."""


class RunLock:
    """Held until it is closed or the process ends, in any way."""

    def __init__(self, folder: Path) -> None:
        self._file = os.fdopen(open_plain(folder / LOCK, os.O_WRONLY), "a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise BusyError(f"another process is training the run {folder}") from error
        except OSError:
            # A file system without locks: training goes on without one.
            return

    def close(self) -> None:
        """Releases the lock. Closing twice is allowed."""
        self._file.close()

    def is_in(self, folder: Path) -> bool:
        """Whether the folder still is the one that the lock was taken in."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), (folder / LOCK).stat())
        except OSError:
            return False
