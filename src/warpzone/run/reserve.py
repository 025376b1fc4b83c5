"""Disk space that is kept back for the last checkpoint: a file as large as the newest one, which
goes when the disk is full and the run has to end."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from warpzone.run.files import SPARE, open_plain

NAME = ".reserve"


class Reserve:
    """The reserve of one folder of checkpoints. Having none is no reason to end a run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def keep(self, size: int) -> None:
        """Keeps so many bytes back, if that leaves others some space. Systems that cannot set space
        aside without writing it have no reserve."""
        if not hasattr(os, "posix_fallocate"):
            return
        with contextlib.suppress(OSError):
            handle = open_plain(self.path, os.O_RDWR)
            try:
                there = os.fstat(handle).st_size
                more = size - there
                if more > 0 and shutil.disk_usage(self.path.parent).free >= more + SPARE:
                    os.posix_fallocate(handle, there, more)
                elif more < 0:
                    os.ftruncate(handle, size)
            finally:
                os.close(handle)

    def free(self) -> bool:
        """Gives the space back; whether there was any."""
        try:
            had = self.path.lstat().st_size > 0
            self.path.unlink()
        except OSError:
            return False
        return had
