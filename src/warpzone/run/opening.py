"""Opening the files of a run's folder. The folder may come from anywhere and may be written to
at this moment, so every reader uses `open_file`, and a bound on the bytes it reads."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from warpzone.run.names import CHECKPOINTS

#: Bytes of a JSON document; those of a run have some KiB.
MOST_JSON = 1 << 20
#: Lists and objects inside each other; rows and documents have three or four.
MOST_DEPTH = 64
#: Larger than any count of a run; JavaScript cannot count beyond it.
MOST_COUNT = 1 << 80

#: Messages for the system's errors about links that are not followed.
_LINKS = {
    errno.ELOOP: "it is a link, which is not followed",
    errno.ENOTDIR: "it lies behind a link, which is not followed, or in no folder",
}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: O_NONBLOCK: a pipe in the place of a file is refused, not waited for.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class File(NamedTuple):
    """A file of a run's folder."""

    #: Relative to the run.
    name: str
    bytes: int
    #: When it was last written, in seconds since 1970.
    time: float


def open_file(run: Path, name: str | Path) -> BufferedReader:
    """Opens a file of a run's folder for reading; `name` is relative to the folder. All readers
    of runs open files here. OSError if it cannot be, if it or a folder on the way from the run
    is a link, which may lead anywhere, and if it is a pipe or a device, which may have no end."""
    *folders, last = _inside(run, name)
    with ExitStack() as failing:
        handle = _open(run, folders, last)
        failing.callback(os.close, handle)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(run / name))
        file = os.fdopen(handle, "rb")
        failing.pop_all()
    return file


@contextmanager
def open_folder(run: Path, below: str | Path = "") -> Iterator[int]:
    """A descriptor of the folder `below` (empty: the run's own), for looking at what is in it. The
    run's own may be a link, those below it may not, nor may one of checkpoints that is given as
    `run`: it is part of a run, wherever that is. OSError if it cannot be opened so."""
    handle = _open(run, list(_inside(run, below)))
    try:
        yield handle
    finally:
        os.close(handle)


def _inside(run: Path, name: str | Path) -> tuple[str, ...]:
    path = Path(name)
    if ".." in path.parts or path.is_absolute():
        raise OSError(errno.EINVAL, "it is not inside the run", str(run / name))
    return path.parts


def _open(run: Path, folders: list[str], file: str = "") -> int:
    """A descriptor of a file, or else of the last folder, each opened from the one before."""
    handle = -1
    try:
        handle = os.open(run, _FOLDER | (os.O_NOFOLLOW if run.name == CHECKPOINTS else 0))
        for part in folders:
            handle = _step(handle, part, _FOLDER | os.O_NOFOLLOW)
        return _step(handle, file, _FILE) if file else handle
    except OSError as error:
        if handle >= 0:
            os.close(handle)
        if error.errno in _LINKS:
            place = str(run.joinpath(*folders, file))
            raise OSError(error.errno, _LINKS[error.errno], place) from error
        raise


def _step(folder: int, name: str, flags: int) -> int:
    handle = os.open(name, flags, dir_fd=folder)
    os.close(folder)
    return handle


def read_file(run: Path, name: str | Path, most: int) -> bytes:
    """The content of a file of at most `most` bytes; OSError if it is larger or cannot be read."""
    with open_file(run, name) as file:
        # Memory is taken for as much as is asked for, not for as much as there is.
        data = file.read(min(os.fstat(file.fileno()).st_size, most) + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes", str(run / name))
    return data


def parse_json(text: str | bytes) -> Any:
    """JSON as it is in a run's folder. Unusable values become None: NaN, infinities (which JSON
    does not have, but a large exponent makes one) and integers beyond all counts. ValueError if
    it is not JSON or nested too deeply."""
    try:
        return _clean(json.loads(text), MOST_DEPTH)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _clean(value: Any, depth: int) -> Any:
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is int:
        return value if -MOST_COUNT < value < MOST_COUNT else None
    if kind is str:
        # A lone surrogate, which JSON can contain, cannot be encoded.
        return value if value.isascii() else value.encode(errors="replace").decode()
    if kind is dict or kind is list:
        # Writing it again may have less stack than reading it.
        if depth == 0:
            raise ValueError("nested too deeply")
        if kind is list:
            return [_clean(part, depth - 1) for part in value]
        return {
            key if key.isascii() else _clean(key, 0): _clean(part, depth - 1)
            for key, part in value.items()
        }
    return value


def read_object(run: Path, name: str | Path, most: int = MOST_JSON) -> dict[str, Any]:
    """A JSON object: OSError if it cannot be read, ValueError if it is not one."""
    value = parse_json(read_file(run, name, most))
    if not isinstance(value, dict):
        raise ValueError(f"it is a JSON {type(value).__name__}, not an object")
    return value


def read_json(run: Path, name: str | Path, most: int = MOST_JSON) -> dict[str, Any]:
    """A JSON object; empty if there is none that can be read."""
    try:
        return read_object(run, name, most)
    except (OSError, ValueError):
        return {}


def written(run: Path, name: str | Path) -> float:
    """When a file or folder was last written; 0 if it is gone or behind a link."""
    path = Path(name)
    try:
        with open_folder(run, path.parent) as folder:
            return os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def names_in(run: Path, below: str = "") -> list[str]:
    """The names of all that is in the folder `below`; OSError if it is a link."""
    with open_folder(run, below) as folder:
        return os.listdir(folder)


def listing(run: Path, below: str, suffixes: tuple[str, ...]) -> list[File]:
    """The files in the folder `below` (empty: the run's own) that end with one of the suffixes,
    sorted by name. Hidden ones and links are left out; there are none in a folder that is a
    link."""
    found = []
    try:
        with open_folder(run, below) as folder:
            for name in os.listdir(folder):
                if not name.endswith(suffixes) or name.startswith("."):
                    continue
                with suppress(OSError):
                    seen = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if stat.S_ISREG(seen.st_mode):
                        whole = f"{below}/{name}" if below else name
                        found.append(File(whole, seen.st_size, seen.st_mtime))
    except OSError:
        return []
    return sorted(found)
