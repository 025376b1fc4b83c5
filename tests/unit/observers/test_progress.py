"""What the live display shows."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from tiny_runs import learn

from warpzone.observers.progress import Progress, done, line


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


def test_a_bar_and_a_clock_on_a_terminal(tmp_path: Path) -> None:
    run, seen = learn(tmp_path, max_steps=32, max_time=2.0)
    progress = Progress(run.config, "a run")

    def screen() -> str:
        console = Console(file=io.StringIO(), width=80, force_terminal=True, no_color=True)
        console.print(progress)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        assert isinstance(text, str)
        return text

    # Before the first update there is a sign of life, too.
    assert "a run" in screen()
    assert "the first update collects and learns from 32 steps · 0:00:0" in screen()
    row = {**seen.rows[0], "global_step": 8, "seconds": 90.0, "eta": 30.0}
    progress.update(row)
    last = screen().splitlines()[-1]
    # A quarter of the steps and three quarters of the time.
    assert done(row, run.config) == 0.75
    assert "━━━" in last
    assert "75% 0:01:30 gone, 0:00:" in last
    assert done({**row, "seconds": 500.0}, run.config) == 1.0
    assert len(last) <= 80


def test_lines_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, seen = learn(tmp_path, max_steps=32)
    for shown_at_all in (True, False):
        with Progress(run.config, "a run", shown=shown_at_all) as progress:
            progress.update(seen.rows[0])
            progress.say("a sentence")
        lines = capsys.readouterr().err.splitlines()
        assert [line.split("=")[0] for line in lines] == (
            ["[train] step", "a sentence"] if shown_at_all else []
        )
