"""One reader of run folders, for everything outside training: dashboard, report, maps,
evaluation, `latest`. It does not depend on training or the network, and accepts folders that are
half written, damaged, or not runs at all."""

from __future__ import annotations

import gzip
import os
import re
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any, NoReturn

from warpzone.config import ConfigError
from warpzone.run import names
from warpzone.run.journal import say
from warpzone.run.opening import (
    MOST_JSON,
    File,
    listing,
    open_file,
    parse_json,
    read_json,
    read_object,
    written,
)

#: A run that has written nothing for this many seconds is not live.
LIVE_FOR = 60.0
#: Largest number of files in a search for runs below a folder.
MOST_FILES = 10_000
#: Bytes at the end of a JSONL file among which its newest row is looked for.
END = 16384
#: Bytes of a line; a row has some KiB.
MOST_LINE = 1 << 20
#: How an object begins, as text or as bytes, the latter perhaps after a byte order mark.
ROW_STARTS = ("{", b"{", b"\xef")
#: Bytes that a compressed part may unpack to: so many, or so many times its size. Rows shrink to a
#: tenth or so; a file that shrinks to a thousandth is not a part of a run.
UNPACKED, UNPACKED_RATIO = 16 << 20, 50
#: Lines that it may have: so many, or one for so many of its bytes. Rows take a hundred bytes each,
#: a dozen when compressed; every line costs the parser some microseconds, however short it is.
LINES, LINE_PACKED = 1 << 15, 4
#: Bytes unpacked between two looks at these limits.
AT_ONCE = 1 << 13
#: Parts of which it is said that they are not read to their end: nobody reads more such lines.
MOST_SAID = 20
#: The word for the run that wrote last.
LATEST = "latest"

Say = Callable[[str], None]


class RunReader:
    """A run's folder. Nothing is kept: every call looks at the files again."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def require(self) -> RunReader:
        """Returns itself; raises ConfigError if the folder is not a run."""
        if not is_run(self.path):
            raise ConfigError(f"{self.path} is not a run: it has no {names.CONFIG}")
        return self

    def document(self, name: str, most: int = MOST_JSON) -> dict[str, Any]:
        """A JSON object of at most `most` bytes, empty where there is no such file; OSError if it
        is damaged."""
        if not (self.path / name).is_file():
            return {}
        try:
            return read_object(self.path, name, most)
        except ValueError as error:
            raise OSError(f"{self.path / name} cannot be read: {error}") from error

    def rows(self, name: str, most: int = 0) -> list[dict[str, Any]]:
        """The rows of a JSONL file, finished parts of it included; a line cut off by a crash or
        still being written is left out. With `most`, of a longer file only every second, fourth, …
        row, so that no more are kept."""
        rows: list[dict[str, Any]] = []
        stride = 1
        for number, row in enumerate(read_rows(self.path, name)):
            if number % stride:
                continue
            if most and len(rows) >= most:
                rows, stride = rows[::2], stride * 2
                if number % stride:
                    continue
            rows.append(row)
        return rows

    def newest_rows(self, name: str, most: int) -> list[dict[str, Any]]:
        """The last rows of a JSONL file, `most` of them."""
        return list(deque(read_rows(self.path, name), most))

    def last_row(self, name: str, key: str) -> dict[str, Any]:
        """The newest row that has `key`, from the end of the file; empty if there is none."""
        try:
            with open_file(self.path, name) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - END))
                lines = file.read(END).split(b"\n")
        except OSError:
            return {}
        for line in reversed(lines[:-1]):
            row = parse_row(line)
            if row is not None and key in row:
                return row
        return {}

    def weights(self) -> list[File]:
        """All weights: those of the run itself first, then those of its checkpoints."""
        own = listing(self.path, "", (names.WEIGHTS_SUFFIX,))
        return own + listing(self.path, names.CHECKPOINTS, (names.WEIGHTS_SUFFIX,))

    def sidecars(self) -> list[File]:
        """The side-cars of its checkpoints; without the side-car that repeats the newest one."""
        found = listing(self.path, names.CHECKPOINTS, (names.SIDECAR_SUFFIX,))
        return [file for file in found if not file.name.endswith(names.LATEST_SUFFIX)]

    def videos(self) -> list[File]:
        """Its videos: those of the run itself (the best weights) first, then the others, newest
        names first."""
        own = listing(self.path, "", names.VIDEO_SUFFIXES)
        return own + listing(self.path, names.VIDEOS, names.VIDEO_SUFFIXES)[::-1]

    def state(self) -> dict[str, Any]:
        """State of the run (running, paused, ended, silent), and the last command."""
        told_in = Path(names.CONTROL) / names.STATE
        told = read_json(self.path, told_in)
        signs = (names.METRICS, names.HEARTBEAT, told_in)
        newest = max(written(self.path, name) for name in signs)
        age = time.time() - newest if newest else None
        doing = str(told.get("doing", ""))
        if doing != "ended" and (age is None or age > LIVE_FOR):
            doing = "silent"
        overrides = told.get("overrides")
        return {
            "doing": doing or "running",
            "paused": bool(told.get("paused")) and doing == "paused",
            "reason": str(told.get("reason", "")),
            "obeys": bool(told) and doing not in ("ended", "silent"),
            "overrides": overrides if isinstance(overrides, dict) else {},
            "age": None if age is None else round(age),
        }


# --- which runs there are -------------------------------------------------------------------------
def is_run(path: Path) -> bool:
    """Whether a folder is a run: it has a configuration."""
    return (path / names.CONFIG).is_file()


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder, or the one run that the folder is."""
    if is_run(folder):
        return [folder]
    try:
        return [path for path in folder.iterdir() if is_run(path)]
    except OSError:
        return []


def latest_run(root: Path) -> Path | None:
    """The run at or below a folder that wrote weights last, of a checkpoint or of an evaluation.
    This is what `latest` means to every command."""
    found: list[tuple[float, Path]] = []
    for folder in folders(root):
        if is_run(folder):
            found += [(file.time, folder) for file in RunReader(folder).weights()]
    return max(found)[1] if found else None


def named_run(word: str | Path, root: Path) -> Path:
    """The run given on the command line: a folder, `latest`, or the name of a run below `root`."""
    if str(word) != LATEST:
        path = Path(word)
        below = root / path
        return below if path.name == str(word) and not path.exists() and is_run(below) else path
    found = latest_run(root)
    if found is None:
        raise ConfigError(f"there is no run with weights in {root}")
    return found


def folders(root: Path, say: Say | None = None, most: int | None = None) -> Iterator[Path]:
    """A folder and those below it, those that changed last first. Not more than `most` files
    (MOST_FILES) are looked at, and links are not followed."""
    left = most = MOST_FILES if most is None else most
    waiting = [root]
    while waiting and left > 0:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        left -= len(entries)
        below = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        below.sort(key=lambda entry: (written(folder, entry.name), entry.name))
        waiting += [Path(entry.path) for entry in below]
        yield folder
    if waiting and say is not None:
        say(f"[train][warn] stopped after {most:,} files below {root}")


# --- rows -----------------------------------------------------------------------------------------
def parts(folder: Path, name: str) -> list[Path]:
    """The finished parts of a JSONL file, oldest first; each once, compressed if it is already."""
    stem, suffix = Path(name).stem, Path(name).suffix
    pattern = re.compile(rf"{re.escape(stem)}-(\d{{4,}}){re.escape(suffix)}(\.gz)?")
    found: dict[int, Path] = {}
    for path in sorted(folder.glob(f"{stem}-*")):
        if match := pattern.fullmatch(path.name):
            # Sorted: the compressed part comes last, and is complete once it has its name.
            found[int(match[1])] = path
    return [found[number] for number in sorted(found)]


@contextmanager
def open_part(path: Path) -> Iterator[BufferedReader[Any]]:
    """A part of a JSONL file, as if it were not compressed. A part that unpacks to far more bytes
    or lines than rows do is damaged from there on (BadGzipFile), which is said once."""
    with open_file(path.parent, path.name) as file:
        if path.suffix == ".gz":
            size = os.fstat(file.fileno()).st_size
            with BufferedReader(_Unpacked(file, path, size)) as packed:
                yield packed
        else:
            yield file


#: Parts of which something was said.
_said: set[Path] = set()


class _Unpacked(RawIOBase):
    """The content of a gzip file, up to a number of bytes and of lines."""

    def __init__(self, file: BufferedReader, path: Path, size: int) -> None:
        """size: of the file, in bytes."""
        self._packed = gzip.GzipFile(fileobj=file)
        self._path = path
        self._left = max(UNPACKED, UNPACKED_RATIO * size)
        self._lines = max(LINES, size // LINE_PACKED)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            self._refuse("it unpacks to far more than rows do.")
        if self._lines < 0:
            self._refuse("it has far more lines than a part of its size has rows.")
        data = self._packed.read1(min(len(buffer), self._left, AT_ONCE))
        buffer[: len(data)] = data
        self._left -= len(data)
        self._lines -= data.count(b"\n")
        return len(data)

    def _refuse(self, why: str) -> NoReturn:
        if self._path not in _said and len(_said) < MOST_SAID:
            _said.add(self._path)
            name, run = self._path.name, self._path.parent.name
            say(f"[run][warn] the rest of {name} of {run!r} is left out: {why}")
        raise gzip.BadGzipFile(why)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of one part; of a damaged part those before the damage, then one that is torn. A
    line that is too long for a row counts as torn."""
    with open_part(path) as file:
        try:
            while line := file.readline(MOST_LINE):
                if len(line) < MOST_LINE or line.endswith(b"\n"):
                    yield line.decode(errors="replace")
                    continue
                while line and not line.endswith(b"\n"):
                    line = file.readline(MOST_LINE)
                yield ""
        except (EOFError, zlib.error, gzip.BadGzipFile):
            yield ""


def read_rows(folder: Path, name: str, last: int | None = None) -> Iterator[dict[str, Any]]:
    """All rows of a file, parts first. A line torn off by a crash is skipped. With `last`, parts
    that are not needed for so many rows are left out."""
    newest = folder / name
    chosen = [*parts(folder, name), *([newest] if newest.is_file() else [])]
    if last is not None:
        lines = 0
        for index in reversed(range(len(chosen))):
            lines += sum(1 for _ in read_lines(chosen[index]))
            if lines >= last:
                chosen = chosen[index:]
                break
    for path in chosen:
        for line in read_lines(path):
            row = parse_row(line) if line.endswith("\n") else None
            if row is not None:
                yield row


def parse_row(line: str | bytes) -> dict[str, Any] | None:
    """A line as a row; None for one that is damaged or not an object. A torn line must not be
    passed: half a row can be valid JSON."""
    # An error costs as much as dozens of lines, and a packed part may have millions of bad ones.
    if line.lstrip()[:1] not in ROW_STARTS:
        return None
    try:
        row = parse_json(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
