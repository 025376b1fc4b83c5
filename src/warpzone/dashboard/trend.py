"""What the list of runs shows of each: how its clear rate went, its best evaluation, its cost."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warpzone.config.play import PlayConfig
from warpzone.run.names import EVALS, METRICS, VERSIONS
from warpzone.run.opening import open_file, read_json
from warpzone.run.reader import parse_row

#: Points of a trend, and the bytes read for each: more than a row has.
POINTS = 24
AROUND = 16 << 10
#: Bytes of evaluations that are read: an evaluation of all stages has about 600 KB.
MOST_EVALS = 64 << 20
CLEARS = re.compile(rb'"clears": ?(\d{1,6})\b')
#: Larger than any count of a run, and no infinity.
MOST = 1e15


def trend(run: Path) -> dict[str, Any]:
    """Steps and clear rates at places spread over the metrics; of a file of any size only these
    are read."""
    found: dict[int, float] = {}
    try:
        with open_file(run, METRICS) as file:
            size = file.seek(0, os.SEEK_END)
            for place in [point * size // POINTS for point in range(POINTS)]:
                file.seek(place)
                lines = file.read(AROUND).split(b"\n")
                # The lines at the ends of a part may be torn.
                found |= _first(lines[0 if place == 0 else 1 : -1])
            file.seek(max(0, size - AROUND))
            found |= _first(reversed(file.read(AROUND).split(b"\n")[1:-1]))
    except OSError:
        return {"trend": []}
    return {"trend": [[step, found[step]] for step in sorted(found)]}


def _first(lines: Iterable[bytes]) -> dict[int, float]:
    """Step and clear rate of the first row that has them."""
    for line in lines:
        row = parse_row(line) or {}
        step, rate = _number(row.get("global_step")), _number(row.get("clear_rate"))
        if step is not None and rate is not None:
            return {int(step): round(min(1.0, max(0.0, rate)), 4)}
    return {}


def best(run: Path, stages: str) -> dict[str, Any]:
    """The most start delays that an evaluation cleared with argmax, and of how many. All rows of
    an evaluation repeat the number, so the text is searched instead of parsed."""
    try:
        with open_file(run, EVALS) as file:
            counts = [int(found[1]) for found in CLEARS.finditer(file.read(MOST_EVALS))]
    except OSError:
        counts = []
    try:
        total: int | None = PlayConfig(stages=stages).most_clears
    except ValueError:
        total = None
    return {"best": max(counts, default=None), "best_of": total}


def device(run: Path) -> dict[str, Any]:
    """What the run computed on, of its newest start: `cpu`, or the name of a GPU."""
    sessions = read_json(run, VERSIONS).get("sessions")
    last = sessions[-1] if isinstance(sessions, list) and sessions else {}
    name = last.get("device") if isinstance(last, dict) else None
    return {"device": name[:80] if isinstance(name, str) else None}


def _number(value: object) -> float | None:
    right = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST
    return float(value) if right else None  # type: ignore[arg-type]
