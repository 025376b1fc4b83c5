"""Opening the files of a run's folder. The folder may come from anywhere and may be written to at
this moment, so whoever reads one goes through `open_file`, and has a bound on what it reads."""

from __future__ import annotations

import json
import os
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

#: Bytes of a JSON document; those of a run have some KiB.
MOST_JSON = 1 << 20


class File(NamedTuple):
    """A file of a run's folder."""

    #: Relative to the run.
    name: str
    bytes: int
    #: When it was last written, in seconds since 1970.
    time: float


def open_file(run: Path, name: str | Path) -> BufferedReader:
    """Opens a file of a run's folder for reading; `name` is relative to the folder. Every file of a
    run that somebody reads is opened here. OSError if it cannot be."""
    return (run / name).open("rb")


def read_file(run: Path, name: str | Path, most: int) -> bytes:
    """The content of a file of at most `most` bytes; OSError if it is larger or cannot be read."""
    with open_file(run, name) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(f"{run / name} has more than {most:,} bytes")
    return data


def parse_json(text: str | bytes) -> Any:
    """JSON as it is in a run's folder: NaN and infinities, which JSON does not have, are None.
    ValueError for what is none, and for what is nested too deeply."""
    try:
        return json.loads(text, parse_constant=_nothing)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read_object(run: Path, name: str | Path, most: int = MOST_JSON) -> dict[str, Any]:
    """A JSON object: OSError if it cannot be read, ValueError if it is none."""
    value = parse_json(read_file(run, name, most))
    if not isinstance(value, dict):
        raise ValueError(f"it is a JSON {type(value).__name__}, not an object")
    return value


def read_json(run: Path, name: str | Path) -> dict[str, Any]:
    """A JSON object; empty if there is none that can be read."""
    try:
        return read_object(run, name)
    except (OSError, ValueError):
        return {}


def written(run: Path, name: str | Path) -> float:
    """When a file was last written; 0 for what is gone by now, or a link to nothing."""
    try:
        return (run / name).stat().st_mtime
    except OSError:
        return 0.0


def listing(run: Path, below: str, suffixes: tuple[str, ...]) -> list[File]:
    """The files in the folder `below` (empty: the run's own) that end with one of the suffixes,
    sorted by name. Hidden ones and links are left out."""
    found = []
    try:
        entries = list(os.scandir(run / below))
    except OSError:
        return []
    for entry in entries:
        if not entry.name.endswith(suffixes) or entry.name.startswith("."):
            continue
        try:
            if entry.is_file(follow_symlinks=False):
                seen = entry.stat(follow_symlinks=False)
                name = f"{below}/{entry.name}" if below else entry.name
                found.append(File(name, seen.st_size, seen.st_mtime))
        except OSError:
            continue
    return sorted(found)


def _nothing(_: str) -> None:
    """What stands for NaN and infinities."""
