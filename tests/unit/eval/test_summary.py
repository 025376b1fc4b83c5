"""Sums over outcomes, and the files they are written to."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from warpzone.eval.cases import Outcome
from warpzone.eval.results import as_document, as_table, write_json, write_parquet
from warpzone.eval.summary import overall, summarize, wilson


def outcome(stage: str, delay: int, reason: str, x: int, policy: str = "argmax") -> Outcome:
    return Outcome(
        stage=stage,
        policy=policy,
        start_delay=delay,
        cleared=reason == "flag",
        furthest_x=x,
        steps=100 + delay,
        time_left=300 + delay,
        episode_return=x / 10,
        reason=reason,
        x=x,
        y=79,
        area_type=1,
        area_index=5,
    )


OUTCOMES = [
    outcome("1-2", 0, "death", 640),
    outcome("1-2", 1, "death", 660),
    outcome("1-2", 2, "stuck", 1300),
    outcome("1-1", 0, "flag", 3160),
    outcome("1-1", 2, "flag", 3160),
    outcome("1-1", 0, "death", 700, "sampled"),
]


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    # Brown, Cai and DasGupta (2001) and direct computation.
    [
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (5, 10, 0.2366, 0.7634),
        (26, 31, 0.6737, 0.9291),
    ],
)
def test_wilson(count: int, total: int, low: float, high: float) -> None:
    assert wilson(count, total) == pytest.approx((low, high), abs=1e-4)


def test_wilson_of_nothing_is_everything() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


def test_rows_by_stage_and_policy() -> None:
    first, sampled, second = summarize(OUTCOMES)
    assert (first.stage, first.policy, first.clears, first.episodes) == ("1-1", "argmax", 2, 2)
    assert (first.mean_time_left, first.worst_x, first.worst_count) == (301, None, 0)
    assert (sampled.policy, sampled.deaths, sampled.mean_time_left) == ("sampled", 1, None)
    assert (second.stage, second.deaths, second.stuck) == ("1-2", 2, 1)
    assert (second.worst_x, second.worst_count) == (672, 2)
    assert (second.furthest_x, second.median_x) == (1300, 660)
    assert overall(OUTCOMES, "argmax")[:2] == (2, 5)


def test_files(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    document = as_document(OUTCOMES, {"weights": "w"})
    write_json(tmp_path / "a.json", document)
    read = json.loads((tmp_path / "a.json").read_text())
    assert read["totals"]["argmax"]["clears"] == 2
    assert [row["x"] for row in read["episodes"]] == [o.x for o in OUTCOMES]
    write_parquet(tmp_path / "a.parquet", OUTCOMES, {"weights": "w"})
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column("start_delay").to_pylist() == [o.start_delay for o in OUTCOMES]
    assert json.loads(table.schema.metadata[b"warpzone"]) == {"weights": "w"}


def test_table_has_every_row() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(as_table(summarize(OUTCOMES), "title"))
    text = console.export_text()
    assert "2/2" in text
    assert "1 stuck" in text
    assert text.count("1-2") == 1


def test_a_narrow_table_fits_a_terminal_of_80_columns() -> None:
    """Nothing is cut: what is left out is left out by name."""
    crowd = [outcome("8-4", delay, "stuck", 3000, "sampled") for delay in range(100)]
    for width in (80, 120):
        console = Console(file=io.StringIO(), width=width)
        console.print(as_table(summarize([*OUTCOMES, *crowd]), "an agent", width))
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        rows = [line for line in text.splitlines() if "argmax" in line or "sampled" in line]
        assert len(rows) == 4
        assert "x~2976 (100), 100 stuck" in rows[-1]
        assert ("furthest x" in text) == (width == 120)
