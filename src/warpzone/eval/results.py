"""Results as files and as a table: JSON, Parquet, and a terminal's."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from warpzone.eval.cases import Outcome
from warpzone.eval.summary import StageSummary, overall, summarize
from warpzone.run.files import write_atomically, write_text

if TYPE_CHECKING:
    from warpzone.eval.whole_game import Game
#: Columns of a terminal that the whole table needs, and what a narrower one is not shown.
WIDE = 110
LEFT_OUT = ("furthest x", "time left", "return")


def as_document(outcomes: Sequence[Outcome], about: dict[str, Any]) -> dict[str, Any]:
    """A complete evaluation: agent, summary, and every episode."""
    policies = dict.fromkeys(outcome.policy for outcome in outcomes)
    totals = {}
    for policy in policies:
        clears, episodes, low, high = overall(outcomes, policy)
        rate = clears / episodes
        totals[policy] = {
            "clears": clears,
            "episodes": episodes,
            "clear_rate": rate,
            "interval": [low, high],
        }
    return {
        **about,
        "totals": totals,
        "stages": [dataclasses.asdict(row) for row in summarize(outcomes)],
        "episodes": [dataclasses.asdict(outcome) for outcome in outcomes],
    }


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Indented JSON, written atomically."""
    write_text(path, json.dumps(document, indent=1) + "\n")


def write_parquet(
    path: Path, rows: Sequence[Outcome] | Sequence[Game], about: dict[str, Any]
) -> None:
    """One row for each episode or game; what was evaluated is in the file's metadata."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise OSError("writing Parquet needs pyarrow: pip install pyarrow") from error
    table = pa.Table.from_pylist([dataclasses.asdict(row) for row in rows])
    table = table.replace_schema_metadata({"warpzone": json.dumps(about)})
    write_atomically(path, lambda temporary: parquet.write_table(table, temporary))


def as_table(rows: Sequence[StageSummary], title: str, width: int = WIDE) -> Table:
    """For a terminal of so many columns; a narrow one is shown less, and all of that."""
    narrow = width < WIDE
    table = Table(title=title, title_justify="left")
    if narrow:
        table.box, table.padding, table.pad_edge = box.SIMPLE_HEAD, (0, 1, 0, 0), False
    table.add_column("stage")
    table.add_column("policy")
    numbers = ("clears", "rate", "95 %", "furthest x", "median x", "time left", "return")
    left_out = LEFT_OUT if narrow else ()
    for name in numbers:
        if name not in left_out:
            table.add_column(name, justify="right")
    table.add_column("fails at")
    stage = ""
    for row in rows:
        colour = "green" if row.clear_rate >= 0.9 else "yellow" if row.clears else "red"
        cells = (
            f"{row.clears}/{row.episodes}",
            f"[{colour}]{row.clear_rate:.0%}[/{colour}]",
            f"{row.low:.0%}-{row.high:.0%}",
            str(row.furthest_x),
            f"{row.median_x:.0f}",
            "" if row.mean_time_left is None else f"{row.mean_time_left:.0f}",
            f"{row.mean_return:.1f}",
        )
        shown = [cell for name, cell in zip(numbers, cells, strict=True) if name not in left_out]
        table.add_row(row.stage if row.stage != stage else "", row.policy, *shown, _failing(row))
        stage = row.stage
    return table


def _failing(row: StageSummary) -> str:
    if row.worst_x is None:
        return ""
    parts = [f"x~{row.worst_x} ({row.worst_count})"]
    if row.stuck:
        parts.append(f"{row.stuck} stuck")
    return ", ".join(parts)
