"""The numbers of a run as columns, and curves of them with as many points as a screen can show."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Rows kept; beyond it every second row of the older half is dropped.
MOST_ROWS = 30_000
#: Columns kept; a run has some dozens.
MOST_COLUMNS = 400


class Table:
    """Rows of named numbers, in the order of their updates."""

    def __init__(self) -> None:
        self.columns: dict[str, Floats] = {}
        self.count = 0
        #: Changes with every change.
        self.version = 0

    def clear(self) -> None:
        """Clears all rows."""
        self.columns, self.count = {}, 0
        self.version += 1

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Appends rows; one that goes back in time replaces those after it."""
        for row in rows:
            place = _number(row.get("update"))
            if place is None:
                continue
            self._go_back(place)
            if self.count >= MOST_ROWS:
                self._thin()
            self._append(row)
            self.version += 1

    def names(self) -> list[str]:
        """Columns, in order of appearance."""
        return list(self.columns)

    def last(self) -> dict[str, float | None]:
        """The newest row."""
        if not self.count:
            return {}
        newest = {name: float(column[self.count - 1]) for name, column in self.columns.items()}
        return {name: value if math.isfinite(value) else None for name, value in newest.items()}

    def curve(
        self, name: str, axis: str, low: float | None, high: float | None, points: int
    ) -> tuple[Floats, Floats]:
        """x and y with about `points` points between `low` and `high`: the ends, and the least and
        the largest of every bucket, so that no spike is lost."""
        if name not in self.columns or axis not in self.columns:
            return np.empty(0), np.empty(0)
        x, y = self.columns[axis][: self.count], self.columns[name][: self.count]
        seen = np.isfinite(x) & np.isfinite(y)
        x, y = x[seen], y[seen]
        first = int(np.searchsorted(x, low, "left")) - 1 if low is not None else 0
        after = int(np.searchsorted(x, high, "right")) + 1 if high is not None else len(x)
        window = slice(max(0, first), min(len(x), after))
        return thin_out(x[window], y[window], points)

    def _go_back(self, place: float) -> None:
        column = self.columns.get("update")
        if column is not None and self.count and column[self.count - 1] >= place:
            self.count = int(np.searchsorted(column[: self.count], place, "left"))

    def _append(self, row: dict[str, Any]) -> None:
        at = self.count
        for name, value in row.items():
            number = _number(value)
            if number is None:
                continue
            column = self.columns.get(name)
            if column is None:
                if len(self.columns) >= MOST_COLUMNS:
                    continue
                column = np.full(max(256, self._capacity()), np.nan)
                self.columns[name] = column
            elif at >= len(column):
                column = self._grown(name, at)
            column[at] = number
        for name, column in self.columns.items():
            if at >= len(column):
                self._grown(name, at)[at] = np.nan
            elif name not in row or _number(row[name]) is None:
                column[at] = np.nan
        self.count += 1

    def _capacity(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)

    def _grown(self, name: str, at: int) -> Floats:
        old = self.columns[name]
        new = np.full(2 * max(len(old), at), np.nan)
        new[: len(old)] = old
        self.columns[name] = new
        return new

    def _thin(self) -> None:
        half = self.count // 2
        kept = np.r_[0:half:2, half : self.count]
        for name, column in self.columns.items():
            column[: len(kept)] = column[kept]
            self.columns[name] = column
        self.count = len(kept)


def thin_out(x: Floats, y: Floats, points: int) -> tuple[Floats, Floats]:
    """At most about `points` of the points, extremes kept."""
    if len(x) <= points:
        return x, y
    buckets = max(1, points // 2)
    width = -(-len(y) // buckets)
    buckets = -(-len(y) // width)
    padded = np.r_[y, np.full(buckets * width - len(y), y[-1])].reshape(buckets, width)
    starts = np.arange(buckets) * width
    chosen = np.r_[starts + padded.argmin(1), starts + padded.argmax(1)].clip(max=len(y) - 1)
    chosen = np.unique(np.r_[0, chosen, len(x) - 1])
    return x[chosen], y[chosen]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None
