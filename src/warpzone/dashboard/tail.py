"""Reads growing files: rows that are new since the last call, also after rotation or
replacement."""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from io import BufferedReader
from pathlib import Path
from typing import Any

from warpzone.run.opening import open_file
from warpzone.run.reader import open_part, parse_row, parts

#: Bytes read at a time, so that a huge file does not need its size in memory.
CHUNK = 1 << 18
#: Bytes parsed in one call: parsed rows of a hostile file are many times as large as its text.
MOST_READ = 32 << 20
#: A longer line is not a row.
MAX_LINE = 1 << 20
#: Fields of a row that is kept, and characters of a text in it.
MOST_FIELDS, MOST_TEXT = 64, 500


class RowsTail:
    """The rows of a JSONL file, its finished parts included. A torn last line waits for its end,
    a damaged line is skipped."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        #: Goes up when the rows before are void: the file was cut or replaced.
        self.resets = 0
        self._clear()

    def _clear(self) -> None:
        self._file: int | None = None
        self._offset = 0
        self._rest = b""
        self._parts = 0
        #: Bytes left to parse in this call.
        self._left = 0

    def read(self, limit: int = 50_000) -> list[dict[str, Any]]:
        """The next rows, about `limit` of them at most; empty when there are none."""
        rows: list[dict[str, Any]] = []
        self._left = MOST_READ
        try:
            self._read(rows, limit)
        except OSError:
            # Gone or being replaced at this moment; the next look sees what came of it.
            return rows
        return rows

    def _read(self, rows: list[dict[str, Any]], limit: int) -> None:
        path = self.folder / self.name
        if self._file is not None:
            try:
                seen = path.stat()
            except FileNotFoundError:
                self._vanished()
                return
            if (seen.st_ino != self._file or seen.st_size < self._offset) and not self._rotated():
                return
        while self._file is None:
            finished = parts(self.folder, self.name)
            if self._parts >= len(finished):
                break
            if not self._part(finished[self._parts], rows, limit):
                return
            self._parts += 1
        with open_file(self.folder, self.name) as file:
            self._file = os.fstat(file.fileno()).st_ino
            file.seek(self._offset)
            self._some(file, rows, limit)

    def _vanished(self) -> None:
        """Between two parts there is a moment without a newest one; else the run is gone."""
        if len(parts(self.folder, self.name)) == self._parts:
            self.resets += 1
            self._clear()

    def _rotated(self) -> bool:
        """Whether the file has become a finished part, whose end is still to be read; else it was
        replaced, and what was read of it is void."""
        self._file = None
        if len(parts(self.folder, self.name)) > self._parts:
            return True
        self.resets += 1
        self._clear()
        return False

    def _part(self, path: Path, rows: list[dict[str, Any]], limit: int) -> bool:
        """Continues with a finished part; returns whether it is read completely."""
        with (
            open_part(path) as file,
            # Of a damaged part the rows before the damage are read.
            contextlib.suppress(EOFError, zlib.error, gzip.BadGzipFile),
        ):
            _skip(file, self._offset)
            if not self._some(file, rows, limit):
                return False
        self._offset, self._rest = 0, b""
        return True

    def _some(self, file: BufferedReader[Any], rows: list[dict[str, Any]], limit: int) -> bool:
        """Rows up to the limits; whether the file has no more."""
        while len(rows) < limit and self._left > 0:
            data = file.read1(CHUNK)
            if not data:
                return True
            self._offset += len(data)
            self._left -= len(data)
            self._take(data, rows)
        return False

    def _take(self, data: bytes, rows: list[dict[str, Any]]) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE:
            self._rest = b""
        for line in lines:
            row = parse_row(line) if len(line) <= MAX_LINE else None
            if row is not None:
                rows.append(row)


def _skip(file: BufferedReader[Any], count: int) -> None:
    """A compressed file has no other way to its middle."""
    if file.seekable():
        file.seek(count)
        return
    while count > 0 and (data := file.read1(min(CHUNK, count))):
        count -= len(data)


def slim(row: dict[str, Any]) -> dict[str, Any]:
    """Reduces an untrusted row: short values, and not too many."""
    kept = {name: value for name, value in list(row.items())[:MOST_FIELDS] if _is_short(value)}
    return {name: value for name, value in kept.items() if len(name) <= MOST_TEXT}


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= MOST_TEXT
    return value is None or isinstance(value, int | float)


class TextTail:
    """The end of a text file, as lines."""

    def __init__(
        self, run: Path, name: str | Path, keep: int = 2000, first: int = 256 * 1024
    ) -> None:
        self.run = run
        self.name = name
        self.keep = keep
        self.first = first
        self.lines: list[str] = []
        #: Number of the first line kept; goes up as old ones are dropped.
        self.start = 0
        self._offset = -1
        self._file = 0
        self._rest = b""

    def read(self) -> bool:
        """Whether there is something new."""
        try:
            with open_file(self.run, self.name) as file:
                seen = os.fstat(file.fileno())
                if self._offset < 0 or seen.st_ino != self._file or seen.st_size < self._offset:
                    self.start += len(self.lines)
                    self.lines, self._rest = [], b""
                    self._offset = max(0, seen.st_size - self.first)
                    self._file = seen.st_ino
                    if self._offset:
                        file.seek(self._offset)
                        self._offset += len(file.readline())
                file.seek(self._offset)
                data = file.read(4 * self.first)
        except OSError:
            return False
        self._offset += len(data)
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[:MAX_LINE]
        self.lines += [line.decode(errors="replace")[:2000] for line in lines]
        extra = max(0, len(self.lines) - self.keep)
        del self.lines[:extra]
        self.start += extra
        return bool(lines)
