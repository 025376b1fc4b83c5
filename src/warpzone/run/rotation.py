"""Splits long files into parts. `metrics.jsonl` is the newest part; once it is large enough it
becomes `metrics-0001.jsonl`, then `metrics-0001.jsonl.gz`, and a new one begins. Readers take
the parts in order (`run/reader.py`). A resumed run first drops the rows after its checkpoint,
from parts too, so that rotation can happen at any moment."""

from __future__ import annotations

import functools
import gzip
import shutil
from pathlib import Path
from typing import Any

from warpzone.run.files import write_atomically
from warpzone.run.jsonl import JsonLines
from warpzone.run.opening import open_file
from warpzone.run.reader import parse_row, parts, read_lines


def rotate(lines: JsonLines, name: str) -> Path:
    """Finishes the newest part; `compress` compresses it later."""
    with lines.lock:
        existing = parts(lines.folder, name)
        number = 1 + (_number(existing[-1]) if existing else 0)
        part = lines.folder / f"{Path(name).stem}-{number:04d}{Path(name).suffix}"
        (lines.folder / name).rename(part)
    return part


def compress(folder: Path, name: str) -> None:
    """Finished parts that are not compressed yet."""
    stem, suffix = Path(name).stem, Path(name).suffix
    for path in sorted(folder.glob(f"{stem}-*{suffix}")):
        packed = path.with_name(path.name + ".gz")
        if not packed.exists():
            write_atomically(packed, functools.partial(_pack, path))
        path.unlink()


def drop_after(lines: JsonLines, name: str, global_step: int) -> int:
    """Removes the rows after a step, and a torn last line; says how many rows went. Rows without
    `global_step` stay."""
    dropped = 0
    with lines.lock:
        for path in lines.folder.glob(f"{Path(name).stem}-*{Path(name).suffix}.gz"):
            # An uncompressed copy, left by a crash, would otherwise reappear without the compressed
            # one.
            path.with_suffix("").unlink(missing_ok=True)
        for path in reversed([*parts(lines.folder, name), lines.folder / name]):
            if not path.is_file():
                continue
            kept, gone, torn = _split(path, global_step)
            dropped += gone
            if gone or torn:
                _replace(path, kept)
            elif kept:
                break
    return dropped


def _split(path: Path, global_step: int) -> tuple[list[str], int, bool]:
    kept: list[str] = []
    gone, torn = 0, False
    for line in read_lines(path):
        row = parse_row(line) if line.endswith("\n") else None
        if row is None:
            torn = True
        elif _step(row) > global_step:
            gone += 1
        else:
            kept.append(line)
    return kept, gone, torn


def _step(row: dict[str, Any]) -> float:
    step = row.get("global_step")
    return step if isinstance(step, int | float) else 0


def _replace(path: Path, kept: list[str]) -> None:
    if not kept:
        path.unlink()
        return
    text = "".join(kept)
    packed = path.suffix == ".gz"
    data = gzip.compress(text.encode()) if packed else text.encode()

    def write(temporary: Path) -> None:
        temporary.write_bytes(data)

    write_atomically(path, write)


def _pack(plain: Path, packed: Path) -> None:
    with (
        open_file(plain.parent, plain.name) as source,
        gzip.open(packed, "wb", compresslevel=6) as target,
    ):
        shutil.copyfileobj(source, target)


def _number(part: Path) -> int:
    return int(part.name.split(".")[0].rsplit("-", 1)[1])
