"""What the live display shows."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from tiny_runs import learn

from warpzone.observers.progress import Progress, line


def shown(progress: Progress, row: dict[str, float]) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(progress._table(row))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def split(text: str) -> dict[str, int]:
    (shares,) = (row.split("│")[2] for row in text.splitlines() if "time split" in row)
    pairs = (share.split() for share in shares.strip().split(", "))
    return {name: int(percent.rstrip("%")) for name, percent in pairs}


@pytest.mark.parametrize("overlap", [False, True])
def test_everything_worth_knowing_is_there(tmp_path: Path, overlap: bool) -> None:
    run, seen = learn(tmp_path, max_steps=5 * 32, overlap_collect=overlap)
    progress = Progress(run.config, "a run")
    row = seen.rows[-1]
    text = shown(progress, row)
    for word in ("steps/s", "frames/s", "to go", "p50", "p90", "clear rate", "furthest x"):
        assert word in text
    for word in ("policy", "value", "entropy", "engine", "inference", "copy", "learn", "log"):
        assert word in text
    assert "skipped" not in text
    assert "3 optimiser steps" in shown(progress, {**row, "updates_skipped": 3.0})
    # What an update itself does makes a whole; what goes on beside it is no part of that.
    shares = split(text)
    own = ("wait", "learn", "log") if overlap else tuple(shares)
    assert sum(shares[name] for name in own) == pytest.approx(100, abs=len(own))
    assert f"step={row['global_step']} " in line(row)


def test_a_run_without_an_episode_yet(tmp_path: Path) -> None:
    run, seen = learn(tmp_path, max_steps=32, stagnation_limit=0)
    text = shown(Progress(run.config, "a run"), seen.rows[0])
    assert "steps/s" in text
    assert "clear rate" not in text


def test_a_budget_of_time_is_shown_as_time(tmp_path: Path) -> None:
    run, seen = learn(tmp_path, max_steps=32, max_time=2.0)
    row = {**seen.rows[0], "seconds": 31.0, "eta": 89.0}
    assert "0:00:31 of 0:02:00 (26%), 0:01:29 to go" in shown(Progress(run.config, "a run"), row)
    assert " time=0:00:31/0:02:00 eta=0:01:29 " in line(row, max_time=2.0)
    assert " time=" not in line(row)
    without = Progress(run.config.replace(max_time=0.0), "a run")
    assert "0:00:31, 0:01:29 to go" in shown(without, row)
