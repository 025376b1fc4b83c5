"""Files that are either the old one or the new one, never half of each."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable
from pathlib import Path

from warpzone.rom.paths import publish
from warpzone.run.opening import open_file

#: Read at a time.
BLOCK = 1 << 20
#: Bytes that a write must leave free on the disk.
SPARE = 16 << 20
#: A file that was being written when its process died.
TEMPORARY = re.compile(r"\..+\.\d+-[0-9a-f]{8}")


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Calls `write` with a temporary file beside `path`, then flushes it, renames it to `path`,
    and flushes the folder."""
    # A plain name rather than mkstemp: the file gets the permissions that other files get.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}")
    try:
        write(temporary)
        publish(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """A small text file, atomically."""
    write_atomically(path, lambda temporary: _write(temporary, text))


def open_plain(path: Path, flags: int) -> int:
    """A descriptor to write to a file of a run, which is made if it is not there. OSError if it is
    a link, which may lead anywhere, or no plain file: a run may come out of an archive."""
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(error.errno, "it is a link, which is not followed", str(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return handle


def replace_unflushed(path: Path, content: bytes) -> None:
    """A file that is the old one or the new one, but worthless after a crash, and so not flushed.
    What was planted in the place of its temporary file (a link, a pipe) is removed, not opened."""
    temporary = path.with_name(f".{path.name}")
    temporary.unlink(missing_ok=True)
    with temporary.open("xb") as file:
        file.write(content)
    temporary.replace(path)


def own_folder(path: Path, mode: int = 0o777) -> None:
    """Makes a folder of a run if it is not there. OSError if it is a link. With a `mode` that keeps
    others out, one that was made without it gets it now."""
    path.mkdir(mode=mode, exist_ok=True)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise OSError(errno.ELOOP, "it is a link, which is not followed", str(path))
    if mode != 0o777 and stat.S_IMODE(info.st_mode) & ~mode:
        path.chmod(mode)


def append_text(path: Path, text: str) -> None:
    """Adds whole lines to a file, or nothing: a partial write on a full disk is undone. Half a
    line that a killed process left at the end is removed first."""
    handle = open_plain(path, os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(handle).st_size
        whole = _end_of_lines(handle, size)
        if whole < size:
            os.ftruncate(handle, whole)
        rest = memoryview(text.encode())
        try:
            while rest:
                rest = rest[os.write(handle, rest) :]
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(handle, whole)
            raise
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """The hash of a file's content, in hexadecimal."""
    with open_file(path.parent, path.name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_space(folder: Path, size: int, spare: int | None = None) -> None:
    """Raises OSError unless `size` bytes, and `spare` (SPARE) more, are free in `folder`."""
    free = shutil.disk_usage(folder).free
    kept = SPARE if spare is None else spare
    if free < size + kept:
        raise OSError(
            f"a checkpoint of {size / 2**20:.1f} MiB does not fit into {folder}: "
            f"{free / 2**20:.1f} MiB are free there and {kept >> 20} MiB must stay free"
        )


def remove_leftovers(folder: Path) -> None:
    """Removes temporary files of dead processes. Only for a folder that this process has locked."""
    for path in folder.glob(".*"):
        if TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _end_of_lines(handle: int, size: int) -> int:
    """The largest offset up to `size` that is the start of a line."""
    while size > 0:
        start = max(0, size - BLOCK)
        found = os.pread(handle, size - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        size = start
    return 0


def _write(path: Path, text: str) -> None:
    path.write_text(text)
