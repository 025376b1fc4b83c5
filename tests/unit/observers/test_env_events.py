"""`env.jsonl`: how environments were made, also those of before the run had a folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from observed_runs import learn
from tiny_runs import tiny

from warpzone.observers.env_events import EnvObserver
from warpzone.train.loop import Run

GAME: dict[str, Any] = {"backend": "backend_games:walk", "force_sync": True, "groups": 2}


def test_events_are_written_as_they_come(tmp_path: Path) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="run", **GAME)
    run = Run(config, [EnvObserver()])
    learn(run)
    rows = [json.loads(line) for line in (tmp_path / "run" / "env.jsonl").read_text().splitlines()]
    assert [row["env"] for row in rows] == [1, 1, 2, 2, 3, 3, 4, 4]
    assert [row["kind"] for row in rows] == ["constructing", "ready"] * 4
    assert {row["of"] for row in rows} == {4}
    assert all(row["seconds"] >= 0 for row in rows[1::2])
    assert all({"timestamp", "pid", "text", "global_step"} <= set(row) for row in rows)


def test_a_run_of_the_native_engine_has_none(tmp_path: Path) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="run")
    learn(Run(config, [EnvObserver()]))
    assert not (tmp_path / "run" / "env.jsonl").exists()


def test_what_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="run", **GAME)
    run = Run(config, [EnvObserver()])
    (run.folder.path / "env.jsonl").mkdir()
    assert learn(run).global_step == 96
    assert "[train][warn] events are not in env.jsonl" in capsys.readouterr().err
