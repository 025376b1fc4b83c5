"""The report of trials: one JSON object on each line, and their summary."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

from warpzone.run.opening import parse_json

REPORT = "env_stability_report.jsonl"
REPORTS = "reports"
_MOST_ERRORS = 10


def append(path: Path, row: dict[str, Any]) -> None:
    """Adds a row."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """All rows; raises ValueError with the line that is not a row."""
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = parse_json(line)
        except ValueError as error:
            raise ValueError(f"line {number} of {path} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise ValueError(f"line {number} of {path} is not an object")
        rows.append(row)
    return rows


def ok(row: dict[str, Any]) -> bool:
    """Whether the trial reset and played the game."""
    return bool(row.get("reset_ok")) and bool(row.get("game_ok")) and not row.get("error")


def summary(rows: list[dict[str, Any]]) -> str:
    """Totals for each kind of trial, and the most frequent errors."""
    lines = [f"{len(rows)} trials, {sum(map(ok, rows))} ok"]
    for kind in sorted({_kind(row) for row in rows}):
        some = [row for row in rows if _kind(row) == kind]
        good = sum(map(ok, some))
        times = [_seconds(row) for row in some]
        lines.append(
            f"{kind}: {good}/{len(some)} ok ({100 * good / len(some):.1f} %), duration min "
            f"{min(times):.2f} s, mean {sum(times) / len(times):.2f} s, max {max(times):.2f} s"
        )
    errors = Counter(printable(str(row["error"])) for row in rows if row.get("error"))
    lines += [f"{count} x {error}" for error, count in errors.most_common(_MOST_ERRORS)]
    return "\n".join(lines)


def printable(text: str) -> str:
    """Without what steers a terminal: the files of trials may come from anywhere."""
    shown = (one if one.isprintable() else " " if one.isspace() else "?" for one in text)
    return "".join(shown)


def _seconds(row: dict[str, Any]) -> float:
    """The duration of a trial; 0 where the row has none."""
    found = row.get("duration")
    return float(found) if isinstance(found, int | float) else 0.0


def _kind(row: dict[str, Any]) -> str:
    return " ".join(printable(str(row.get(name, "?"))) for name in ("kind", "backend", "num_envs"))


def keep_diagnostics(folder: Path, reports: Path, seed: int, num_envs: int) -> Path:
    """Copies what a failed trial left to `reports/async_diag_<ts>/seed_<seed>_n<num_envs>`."""
    target = reports / f"async_diag_{int(time.time())}" / f"seed_{seed}_n{num_envs}"
    shutil.copytree(folder, target, dirs_exist_ok=True)
    return target
