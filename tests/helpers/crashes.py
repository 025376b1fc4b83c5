"""What a machine that loses its power may find on its disk: the log of `recorder.c`, and a disk
that keeps what was flushed and, of the rest, as much or as little as it likes.

After Pillai et al. 2014 (ALICE): data is safe once its file was flushed, a name once its folder
was. Until then both may be there or not, whatever the order in which they were written.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath

SOURCE = Path(__file__).parent / "recorder.c"


@dataclass(frozen=True)
class Op:
    """One call that changed something, or waited until it was on the disk."""

    what: str
    path: str
    other: str = ""
    at: int = 0
    data: bytes = b""

    @property
    def name(self) -> str:
        return PurePath(self.path).name


def recorder(folder: Path) -> Path:
    """The library that is preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    assert compiler is not None, "the recorder of system calls needs a C compiler"
    made = folder / "recorder.so"
    flags = ["-shared", "-fPIC", "-O1", "-o", str(made), str(SOURCE), "-ldl", "-lpthread"]
    subprocess.run([compiler, *flags], check=True, timeout=120)
    return made


def recorded(command: list[str], below: Path, scratch: Path, seconds: float = 300.0) -> list[Op]:
    """Everything that a command does below a folder."""
    log = scratch / "calls.log"
    settings = {"LD_PRELOAD": str(recorder(scratch)), "RECORD_TO": str(log)}
    settings["RECORD_BELOW"] = str(below)
    subprocess.run(command, check=True, timeout=seconds, env={**os.environ, **settings})
    return list(parsed(log.read_bytes(), below))


def parsed(log: bytes, below: Path) -> Iterator[Op]:
    place = 0
    while place < len(log):
        end = log.index(b"\n", place)
        what, at, size, path, other = log[place:end].decode().split("\t")
        place = end + 1 + int(size)
        path, other = (os.path.relpath(name, below) if name else "" for name in (path, other))
        yield Op(what, path, other, int(at), log[end + 1 : place])


@dataclass
class File:
    """Content as processes see it, and as far as it was flushed."""

    seen: bytearray = field(default_factory=bytearray)
    safe: bytes = b""


class Disk:
    """Names and contents while operations are applied one by one."""

    def __init__(self) -> None:
        #: Name -> file, or None for a folder; as processes see them, and those that are safe.
        self.names: dict[str, File | None] = {".": None}
        self.safe: dict[str, File | None] = {".": None}

    def apply(self, op: Op) -> None:
        file = self.names.get(op.path)
        if op.what == "mkdir":
            self.names[op.path] = None
        elif op.what in ("make", "empty"):
            if file is None:
                file = self.names[op.path] = File()
            if op.what == "empty":
                file.seen.clear()
        elif op.what == "rename":
            self.names[op.other] = self.names.pop(op.path)
        elif op.what == "unlink":
            self.names.pop(op.path, None)
        elif op.what == "sync" and file is None:
            self._flush_folder(op.path)
        elif file is not None:
            self._change(file, op)

    @staticmethod
    def _change(file: File, op: Op) -> None:
        if op.what == "write":
            file.seen[op.at : op.at + len(op.data)] = op.data
        elif op.what == "cut":
            del file.seen[op.at :]
        elif op.what == "sync":
            file.safe = bytes(file.seen)

    def _flush_folder(self, folder: str) -> None:
        def inside(names: dict[str, File | None]) -> dict[str, File | None]:
            here = PurePath(folder)
            return {name: file for name, file in names.items() if PurePath(name).parent == here}

        for name in inside(self.safe).keys() - self.names.keys():
            del self.safe[name]
        self.safe.update(inside(self.names))

    def states(self) -> dict[str, dict[str, bytes | None]]:
        """Three of what may be left after a crash: all of it; every name, but only what was
        flushed of the files; and of both only what was flushed."""
        reachable = {name for name in self.safe if self._leads_to(name)}
        return {
            "everything": {name: _content(file, safe=False) for name, file in self.names.items()},
            "all names": {name: _content(file, safe=True) for name, file in self.names.items()},
            "what was flushed": {name: _content(self.safe[name], safe=True) for name in reachable},
        }

    def _leads_to(self, name: str) -> bool:
        return all(str(folder) in self.safe for folder in PurePath(name).parents)


def _content(file: File | None, *, safe: bool) -> bytes | None:
    if file is None:
        return None
    return file.safe if safe else bytes(file.seen)


def fingerprint(state: dict[str, bytes | None]) -> str:
    """Equal for states that differ in the content of unfinished files alone."""
    digest = hashlib.sha256()
    for name, content in sorted(state.items()):
        hidden = PurePath(name).name.startswith(".")
        digest.update(f"{name}\0".encode())
        digest.update(b"" if hidden or content is None else hashlib.sha256(content).digest())
    return digest.hexdigest()


def lay_out(state: dict[str, bytes | None], folder: Path) -> None:
    """The state as files."""
    for name, content in sorted(state.items()):
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
