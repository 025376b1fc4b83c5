"""The private folder in which the ranks of one machine find each other, and who spoke last."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from warpzone.dist.place import MEETING, Place

#: Seconds after which a rank looks again whether the folder is there.
EVERY = 0.05


@contextmanager
def meeting_folder(place: Place, timeout: timedelta) -> Iterator[Path | None]:
    """The folder, which goes when rank 0 leaves the block. None for ranks of several machines, and
    for those that torchrun started: it has a store."""
    if not place.one_machine or place.by == "torchrun":
        yield None
    elif place.by == "slurm":
        with _of_step(place, timeout) as folder:
            yield folder
    elif MEETING in os.environ:
        yield Path(os.environ[MEETING])
    else:
        folder = Path(tempfile.mkdtemp(prefix="warpzone-ranks-"))
        os.environ[MEETING] = str(folder)
        try:
            yield folder
        finally:
            del os.environ[MEETING]
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _of_step(place: Place, timeout: timedelta) -> Iterator[Path]:
    """Tasks of SLURM have no parent that could tell them a name, so it follows from the step."""
    folder = step_folder()
    if not place.leads:
        wait_for(folder, timeout)
        yield folder
        return
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise OSError(
            f"the ranks of this step meet in {folder}, which is there already: remove it."
        ) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def step_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the tasks of a SLURM step meet; no step has the name of another one."""
    names = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
    words = (environ.get(name, "0") for name in names)
    return Path(tempfile.gettempdir()) / "-".join(("warpzone-ranks", str(os.getuid()), *words))


def wait_for(folder: Path, timeout: timedelta) -> None:
    """Until rank 0 has made the folder. OSError if it does not, or if the folder is somebody
    else's or open to others."""
    ends = time.monotonic() + timeout.total_seconds()
    while True:
        try:
            found = folder.lstat()
            break
        except FileNotFoundError:
            if time.monotonic() > ends:
                seconds = timeout.total_seconds()
                raise OSError(
                    f"rank 0 has not made {folder} in {seconds:.0f} s; all tasks need the same "
                    "TMPDIR."
                ) from None
            time.sleep(EVERY)
    private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if not private or found.st_uid != os.getuid():
        raise OSError(f"the ranks of this step meet in {folder}, which is not theirs: remove it.")
