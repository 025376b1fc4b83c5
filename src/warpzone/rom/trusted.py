"""Folders and files that only the user or root can have written or can replace.

A path does not guarantee this: a user who can write to a folder on the way can replace the next one
between a check and its use. Therefore a folder is opened step by step from the root, each step
checked on the descriptor that the next one starts from, and files are opened from there.
"""

import contextlib
import errno
import os
import stat
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: O_NONBLOCK: a pipe in the place of a file is refused, not waited for.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
#: As many as the system follows.
_MOST_LINKS = 40


class UntrustedError(Exception):
    """Why another user may have written at a place, without a full stop: advice follows."""

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(reason)
        self.place = place


def open_folder(folder: Path) -> int:
    """A descriptor of a folder of the user's own, made (for the user alone) if it is not there.
    Every folder on the way belongs to the user or root, and no other user can change it; links
    on the way are followed if they are the user's or root's."""
    handle = os.open("/", _FOLDER)
    place, links = Path("/"), 0
    todo = list(reversed(folder.absolute().parts[1:]))
    with contextlib.ExitStack() as failing:
        failing.callback(lambda: os.close(handle))
        while todo:
            name = todo.pop()
            if todo and (target := _link(handle, name, place / name)) is not None:
                links += 1
                if links > _MOST_LINKS:
                    raise UntrustedError(place, f"{folder} leads through too many links")
                todo += reversed([part for part in Path(target).parts if part != "/"])
                step, place = ("/", Path("/")) if target.startswith("/") else (".", place)
            else:
                step, place = name, place / name
            following = _step(handle, step, place)
            os.close(handle)
            handle = following
            if place != Path("/"):
                _check_folder(os.fstat(handle), place, last=not todo)
        failing.pop_all()
    return handle


def open_file(folder: int, path: Path, *, secret: bool = False) -> int:
    """A descriptor of a plain file in its folder, which `open_folder` opened; it belongs to the
    user, and no other user can write to it. With `secret`, no other user can read it under any
    name."""
    try:
        handle = os.open(path.name, _FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise UntrustedError(path, f"{path} is not a plain file") from error
        raise
    info = os.fstat(handle)
    wrong = ""
    if not stat.S_ISREG(info.st_mode):
        wrong = "is not a plain file"
    elif owner(info) != os.geteuid():
        wrong = "was written by another user"
    elif info.st_mode & _OTHERS_WRITE:
        wrong = "can be written by others"
    elif secret and (info.st_mode & 0o077 or info.st_nlink != 1):
        wrong = "can be read by others"
    if wrong:
        os.close(handle)
        raise UntrustedError(path, f"{path} {wrong}")
    return handle


def read(handle: int, most: int) -> bytes:
    """All of an open file from its start; at most so many bytes."""
    parts, place = [], 0
    while place < most and (part := os.pread(handle, most - place, place)):
        parts.append(part)
        place += len(part)
    return b"".join(parts)


def owner(info: os.stat_result) -> int:
    """Owner of a file or folder."""
    return info.st_uid


def _link(folder: int, name: str, place: Path) -> str | None:
    """The target of a link; None if it is not a link."""
    try:
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(info.st_mode):
        return None
    if owner(info) not in (0, os.geteuid()):
        raise UntrustedError(place, f"the link {place} belongs to another user")
    return os.readlink(name, dir_fd=folder)


def _step(folder: int, name: str, place: Path) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        # Another process may have made it first; the owner is checked below.
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
        return os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UntrustedError(place, f"{place} is not a folder of its own") from error
        raise


def _check_folder(info: os.stat_result, place: Path, *, last: bool) -> None:
    mine = (os.geteuid(),) if last else (0, os.geteuid())
    if owner(info) not in mine:
        raise UntrustedError(place, f"{place} belongs to another user")
    # Where the sticky bit is set, as in /tmp, others cannot rename or remove what is not theirs.
    if info.st_mode & _OTHERS_WRITE and (last or not info.st_mode & stat.S_ISVTX):
        raise UntrustedError(place, f"others can write to {place}")
