"""Who descends from whom in a population: what members wrote down, put together for reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from warpzone.run.files import write_text
from warpzone.run.names import POPULATION
from warpzone.run.reader import read_rows
from warpzone.search.records import command
from warpzone.search.space import Space

#: The folder of the members' own files.
MEMBERS = "members"
FORMAT = 1


def read_member(path: Path) -> list[dict[str, Any]]:
    """What a member wrote down so far."""
    return list(read_rows(path.parent, path.name)) if path.is_file() else []


def write_population(space: Space, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Writes `population.json` as it is now, and returns it."""
    rows = {path.stem: read_member(path) for path in sorted((folder / MEMBERS).glob("*.jsonl"))}
    runs = [_run(member, row, rows[member]) for member in rows for row in _begun(rows[member])]
    sign = 1 if space.objective.direction == "minimize" else -1
    values = [
        (sign * point["value"], point["step"], run["run"], point["settings"])
        for run in runs
        for point in run["points"]
        if point["value"] is not None
    ]
    best = min(values, key=lambda value: value[:3], default=None)
    record = {
        "format": FORMAT,
        "name": space.name,
        "objective": space.objective.describe(),
        "direction": space.objective.direction,
        "max_steps": space.base.max_steps,
        "parameters": [parameter.name for parameter in space.parameters],
        **facts,
        "runs": runs,
        "best": None
        if best is None
        else {"value": sign * best[0], "step": best[1], "run": best[2], "settings": best[3]},
        "command": "" if best is None else command(space, best[3]),
    }
    write_text(folder / POPULATION, json.dumps(record, indent=1) + "\n")
    return record


def _begun(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["event"] == "begin"]


def _run(member: str, row: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    """One run: where it begins, from which other one, and its values. A session that was repeated
    after a kill counts once."""
    points = {
        point["step"]: point
        for point in rows
        if point["event"] == "value" and point["run"] == row["run"]
    }
    kept = ("step", "value", "settings")
    return {
        "run": row["run"],
        "member": int(member),
        "parent": row["parent"],
        "step": row["step"],
        "settings": row["settings"],
        "points": [{key: points[step][key] for key in kept} for step in sorted(points)],
    }
