"""Validated rows: every field has its type, or is absent. Training writes them so, but a run may
come from another user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: Whole numbers of episodes and evaluations, and the range each lies in.
COUNTS = {
    "global_step": (0, 1 << 53),
    "global_update": (0, 1 << 53),
    "start_delay": (0, 1 << 31),
    "steps": (0, 1 << 53),
    "frames": (0, 1 << 53),
    "restart": (0, 1 << 53),
    # Places in a level, in pixels; areas are bytes of the game's RAM, -1 where unknown.
    "furthest_x": (0, 1 << 16),
    "x": (0, 1 << 16),
    "y": (0, 1 << 16),
    "area_type": (-1, 255),
    "area_index": (-1, 255),
}
NUMBERS = ("seconds", "episode_return", "time_left", "timestamp")
TEXTS = ("policy", "reason")
#: The columns of a moment in `archive.json`: where it is, and how attempts from there went.
MOMENT = ("stage", "area_type", "area_index", "x", "y", "attempts", "gains", "clears")
MOST_MOMENTS = 16384
#: Characters of a text, and of the name of a field.
MOST_TEXT = 100
#: Larger than any quantity of a run; sums of a few of them stay finite.
MOST = 1e100


def episodes(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Ends of episodes: rows of `episodes.jsonl`, `evals.jsonl` and of a separate evaluation."""
    return [episode(row) for row in rows if isinstance(row, dict)]


def episode(row: dict[str, Any]) -> dict[str, Any]:
    """The known fields with valid values."""
    kept: dict[str, Any] = {}
    for name, (low, high) in COUNTS.items():
        if type(value := row.get(name)) is int and low <= value <= high:
            kept[name] = value
    kept |= {name: row[name] for name in NUMBERS if name in row and is_number(row[name])}
    kept |= {name: row[name] for name in TEXTS if name in row and is_text(row[name])}
    if is_text(stage := row.get("stage")) or type(stage) is int:
        kept["stage"] = stage
    if "cleared" in row:
        kept["cleared"] = bool(row["cleared"])
    return kept


def moments(document: dict[str, Any]) -> list[dict[str, int]]:
    """The valid ones of `archive.json`."""
    rows = document.get("moments")
    return [
        dict(zip(MOMENT, row, strict=True))
        for row in (rows[:MOST_MOMENTS] if isinstance(rows, list) else [])
        if isinstance(row, list)
        and len(row) == len(MOMENT)
        and all(type(value) is int and 0 <= value < 1 << 31 for value in row)
        and row[MOMENT.index("attempts")] >= row[MOMENT.index("gains")]
    ]


def numbers(row: dict[str, Any]) -> dict[str, Any]:
    """A row of metrics: numbers under short names, and None where something was not measured."""
    return {
        name: value
        for name, value in row.items()
        if len(name) <= MOST_TEXT and (value is None or is_number(value))
    }


def is_number(value: Any) -> bool:
    """Whether it is a finite number that can be added to others."""
    return type(value) in (int, float) and abs(value) < MOST


def is_text(value: Any) -> bool:
    """Whether it is a short text."""
    return isinstance(value, str) and len(value) <= MOST_TEXT
