"""Where the user's files live, and how a file that matters is written."""

import errno
import os
import stat
import sys
import tempfile
from pathlib import Path


def data_dir() -> Path:
    """Where ROMs are kept: $WARPZONE_DATA, or the platform's place for an application's data."""
    return _user_dir("WARPZONE_DATA", "XDG_DATA_HOME", ".local/share", "Application Support")


def cache_dir() -> Path:
    """Where translated code is kept: $WARPZONE_CACHE, or the platform's place for caches."""
    return _user_dir("WARPZONE_CACHE", "XDG_CACHE_HOME", ".cache", "Caches")


def _user_dir(override: str, xdg: str, home_default: str, mac_default: str) -> Path:
    if value := os.environ.get(override):
        return Path(value).expanduser().absolute()
    # The XDG specification tells programs to ignore relative paths in its variables.
    if (value := os.environ.get(xdg)) and os.path.isabs(value):
        return Path(value) / "warpzone"
    if sys.platform == "darwin":
        return Path.home() / "Library" / mac_default / "warpzone"
    return Path.home() / home_default / "warpzone"


def make_private(folder: Path) -> None:
    """Creates `folder` for the user alone; its parents get the usual rights."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def read_plain(path: Path, most: int) -> bytes:
    """The content of a plain file of at most `most` bytes, links followed. OSError for a larger
    one, and for pipes and devices, which may have no end: they are not waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(path))
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(most + 1)
    finally:
        os.close(handle)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(path))
    return data


def write_atomic(path: Path, data: bytes) -> None:
    """Writes `path` so that it is either the old file or the whole new one, even after a crash."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        publish(Path(temporary), path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def publish(temporary: Path, path: Path) -> None:
    """Gives a finished file its real name: synced, renamed, folder synced."""
    flush(temporary)
    os.replace(temporary, path)
    flush(path.parent)


def flush(path: Path) -> None:
    """Waits until a file or folder is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
