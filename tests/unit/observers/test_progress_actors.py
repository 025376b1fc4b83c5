"""What the live display shows of actors: how many there are, and how far they are behind."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tiny_runs import learn, tiny

from warpzone.observers.progress import Progress, line

FLEET = {"lag_p50": 0.5, "lag_max": 2, "actors_present": 3, "actors_lost": 1}


@pytest.fixture
def row(tmp_path: Path) -> dict[str, Any]:
    """Metrics of an update without actors."""
    _, seen = learn(tmp_path, max_steps=32)
    return dict(seen.rows[0])


def shown(row: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(Progress(tiny(), "a run")._table(row))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_the_table_says_how_far_actors_are_behind(row: dict[str, Any]) -> None:
    (found,) = (text for text in shown({**row, **FLEET}).splitlines() if "actors" in text)
    cells = [cell.strip() for cell in found.split("│")]
    assert cells[1:3] == ["actors", "3; 1 lost; lag of 0.5 updates (median), 2 (most)"]


def test_a_line_says_so_too(row: dict[str, Any]) -> None:
    assert line({**row, **FLEET}).endswith(" lag=0.5/2 lost=1")


def test_a_run_without_actors_says_nothing_of_them(row: dict[str, Any]) -> None:
    assert "lag" not in line(row)
    assert "actors" not in shown(row)
