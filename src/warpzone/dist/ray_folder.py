"""The folder of a Ray that is started here: it goes when its owner ends, and if that was killed,
when the next one starts."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from warpzone.run.lock import LOCK, BusyError, RunLock

#: The path of a socket has at most 107 characters, so the folder is in TMPDIR and its name is
#: short.
PREFIX = "wz-ray-"


@contextmanager
def ray_folder() -> Iterator[str]:
    """A folder for Ray, locked as long as this process has it."""
    parent = Path(tempfile.gettempdir())
    remove_left(parent)
    # It gets its name when it is locked: without a lock it would look like one that was left.
    made = Path(tempfile.mkdtemp(prefix="."))
    with closing(RunLock(made)):
        place = made.rename(parent / f"{PREFIX}{made.name.lstrip('.')}")
        try:
            yield str(place)
        finally:
            shutil.rmtree(place, ignore_errors=True)


def remove_left(parent: Path) -> None:
    """Removes the folders of this user's processes that were killed."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
            private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
            if not private or found.st_uid != os.getuid() or not (folder / LOCK).is_file():
                continue
            with closing(RunLock(folder)):
                shutil.rmtree(folder, ignore_errors=True)
        except (BusyError, OSError):
            # Somebody has it, or has just removed it.
            continue
