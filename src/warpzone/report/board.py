"""The board: all 32 stages with how often they are cleared, whether that got better, and where it
fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from warpzone.env.stages import NUM_STAGES, stage_name
from warpzone.eval.summary import PLACE
from warpzone.report.charts import Cell, stage_board
from warpzone.report.data import RunData
from warpzone.report.html import Markup, tag

#: Of training episodes, those that a stage's rate is of.
RECENT = 100
STAGES = tuple(stage_name(index) for index in range(NUM_STAGES))

Rows = Sequence[dict[str, Any]]


def board(run: RunData) -> Markup:
    """Of each stage its evaluation, or else its newest training episodes from the door; stages that
    were neither trained on nor evaluated stay empty."""
    evaluated = _by_stage(run.best_rows())
    trained = _by_stage(
        {**row, "stage": stage_name(row["stage"])}
        for row in run.episodes
        if isinstance(row.get("stage"), int) and 0 <= row["stage"] < NUM_STAGES
    )
    known = {str(row.get("stage")) for row in run.evals} | trained.keys()
    cells = {}
    for name in STAGES:
        if name in evaluated:
            trend = [point.rate for point in run.points("argmax", name)]
            cells[name] = _evaluated(evaluated[name], trend, trained=name in known)
        elif door := [row for row in trained.get(name, []) if not row.get("restart")]:
            cells[name] = _trained(door[-RECENT:])
    caption = f"{run.name}: clear rate (argmax; below it sampled), trend, where most episodes fail"
    return tag("figure", tag("figcaption", caption), stage_board(cells))


def _evaluated(rows: Rows, trend: Sequence[float], *, trained: bool) -> Cell:
    counts = {}
    for policy in ("argmax", "sampled"):
        chosen = [row for row in rows if row.get("policy") == policy]
        if chosen:
            counts[policy] = (sum(bool(row.get("cleared")) for row in chosen), len(chosen))
    said = ", ".join(f"{policy} {clears} of {of}" for policy, (clears, of) in counts.items())
    shown = counts.get("argmax") or counts.get("sampled") or (0, len(rows))
    sampled = counts.get("sampled") if "argmax" in counts else None
    failed = [row for row in rows if not row.get("cleared") and row.get("policy") != "sampled"]
    return Cell(
        rate=shown[0] / shown[1],
        said=said if trained else f"{said}; not trained on",
        below="{}/{}".format(*sampled) if sampled else "",
        trend=trend,
        worst_x=_worst(failed, "x"),
        # An agent that never saw a stage has not failed at it.
        strange=not trained and shown[0] == 0,
    )


def _trained(rows: Rows) -> Cell:
    clears = sum(row.get("reason") == "flag" for row in rows)
    failed = [row for row in rows if row.get("reason") != "flag"]
    said = f"{clears} of the newest {len(rows)} training episodes"
    return Cell(clears / len(rows), said, below="training", worst_x=_worst(failed, "furthest_x"))


def _worst(rows: Rows, field: str) -> int | None:
    """Where most of them ended."""
    ends = [row.get(field, row.get("furthest_x")) for row in rows]
    places = Counter(x // PLACE for x in ends if x is not None)
    return places.most_common(1)[0][0] * PLACE if places else None


def _by_stage(rows: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(str(row.get("stage")), []).append(row)
    return found
