"""The regressions: a stub cannot pass them, the game does, and every trial leaves a row."""

import json
from pathlib import Path
from typing import Any

import pytest

from warpzone.stability import native_trial, regression, report


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows() -> list[dict[str, Any]]:
    return report.read(Path(report.REPORT))


MAINS = [regression.sync_main, regression.async_main, native_trial.main]


@pytest.mark.parametrize("main", MAINS)
def test_dry_run_does_nothing(
    main: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dry-run"]) == 0
    assert "would run" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("main", [*MAINS, regression.trial_main, regression.parse_main])
def test_help(main: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["-h"])
    assert stop.value.code == 0
    assert "--dry-run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("main", "words", "said"),
    [
        (regression.sync_main, ["--trials", "0"], "--trials must be at least 1"),
        (regression.sync_main, ["--backend", "native"], "script of its own"),
        (regression.async_main, ["--backend", "x"], "module:factory"),
        (regression.trial_main, ["0", "1"], "num_envs must be at least 1"),
        (native_trial.main, ["--cycles", "0"], "--cycles must be at least 1"),
    ],
)
def test_usage(main: Any, words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("factory", "reason"),
    [("stub", "the picture of lane 0 is empty"), ("walk", "the RAM of lane 0 changed in 0 of")],
)
def test_a_stub_fails(factory: str, reason: str) -> None:
    """Zeros fail, and so does a toy that moves and draws but is not the game."""
    words = ["--trials", "1", "--num-envs", "2", "--backend", f"backend_games:{factory}"]
    assert regression.sync_main(words) == 1
    (row,) = rows()
    assert row["reset_ok"]
    assert not row["game_ok"]
    assert row["error"].startswith(f"StubError: {reason}")


def test_the_game_passes(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gym_super_mario_bros", reason="needs requirements-compare.lock")
    assert regression.sync_main(["--trials", "1", "--num-envs", "1", "--steps", "8"]) == 0
    (row,) = rows()
    assert row["kind"] == "sync"
    assert row["game_ok"]
    assert row["error"] is None
    assert {"timestamp", "num_envs", "seed", "duration", "construct_time", "reset_time"} <= set(row)
    assert "sync nes-py 1: 1/1 ok (100.0 %)" in capsys.readouterr().out


def test_missing_backend_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert regression.sync_main(["--backend", "no_such_module:make"]) == 1
    assert "cannot be imported" in capsys.readouterr().err
    assert not Path(report.REPORT).exists()


def test_a_hanging_trial_is_ended_and_its_diagnostics_kept() -> None:
    words = ["--trials", "1", "--num-envs", "1", "--timeout", "10", "--seed", "5"]
    assert regression.async_main([*words, "--backend", "backend_games:stuck"]) == 1
    (row,) = rows()
    assert row["error"] == "timeout after 10 s"
    assert "constructing env 1/1" in row["worker_stderr"]
    kept = Path(row["diagnostics"])
    assert kept.parent.parent == Path(report.REPORTS)
    assert kept.name == "seed_5_n1"
    logs = list(kept.rglob("env_init_idx0_pid*.log"))
    assert logs
    # How far it came in ten seconds depends on the machine; that it began is always told.
    assert "start" in logs[0].read_text().split()


def test_diagnostics_are_digested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With events, and of folders that have the workers' files alone."""
    new, old = tmp_path / "async_diag_1" / "new", tmp_path / "async_diag_1" / "old"
    for folder in (new, old):
        folder.mkdir(parents=True)
        text = "2026-01-01T00:00:00.000Z start\n2026-01-01T00:00:00.100Z calling\n"
        text += 'Thread 0x1 (most recent call first):\n  File "/a/b/game.py", line 7 in load\n'
        (folder / "env_init_idx1_pid12.log").write_text(text)
    rows = [
        {"kind": "ready", "env": 5, "of": 6, "seconds": 0.5, "text": "env 5/6 ready"},
        {"kind": "marker", "env": 6, "text": "calling"},
        {"kind": "lost", "env": 6, "text": "worker 1 hung; diagnostics are in here"},
        {"kind": "marker", "text": "before_construct"},
    ]
    lines = [json.dumps(row) for row in rows]
    (new / "events.jsonl").write_text("\n".join([*lines, '{"kind": "rea', "7", ""]))
    assert regression.parse_main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{new}: 1 of 2 environments were made, in 0.50 s to 0.50 s (mean 0.50 s)",
        "  env 6: last marker calling",
        "    lost: worker 1 hung",
        "    in game.py:7 load",
        f"{old}: 0 of 1 environments were made",
        "  env 2: last marker calling",
        "    in game.py:7 load",
    ]
    assert regression.parse_main([str(tmp_path), "--json"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [env["env"] for env in found[0]["envs"]] == [5, 6]
    assert found[0]["envs"][0] == {"env": 5, "lost": [], "seconds": 0.5}
    assert regression.parse_main([str(tmp_path), "--dry-run"]) == 0
    assert capsys.readouterr().out == "2 folders of diagnostics can be read\n"
    (tmp_path / "empty").mkdir()
    assert regression.parse_main([str(tmp_path / "empty")]) == 1
    assert "there are no diagnostics in" in capsys.readouterr().err


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    good = {"kind": "sync", "backend": "nes-py", "num_envs": 8, "reset_ok": True, "game_ok": True}
    for duration in (1.0, 3.0):
        report.append(Path(report.REPORT), {**good, "duration": duration, "error": None})
    report.append(Path(report.REPORT), {**good, "game_ok": False, "duration": 9.0, "error": "lost"})
    assert regression.parse_main([]) == 0
    said = capsys.readouterr().out
    assert "3 trials, 2 ok" in said
    assert "min 1.00 s, mean 4.33 s, max 9.00 s" in said
    assert "1 x lost" in said
    assert regression.parse_main(["--dry-run"]) == 0
    assert regression.parse_main(["nowhere.jsonl"]) == 1
    Path(report.REPORT).write_text("{broken\n")
    assert regression.parse_main([]) == 1
    assert "line 1" in capsys.readouterr().err


def test_native_stability(tmp_path: Path) -> None:
    out = tmp_path / "native_trial.json"
    words = ["--cycles", "8", "--most-lanes", "6", "--threads", "3", "--minutes", "0.01"]
    assert native_trial.main([*words, "--lanes", "4", "--out", str(out)]) == 0
    result = json.loads(out.read_text())
    assert result["failed"] == []
    assert [row["lanes"] for row in result["sizes"]] == [1, 2, 3, 4, 6]
    assert result["mixed_run"]["steps"] > 0
    assert set(result["processes"].values()) == {True}


def test_native_failures_are_found() -> None:
    part = {"failures": 0, "rss_mb_first": 10.0, "rss_mb_last": 10.5}
    good = {"processes": {"fork": True}, "threads": {"same": True}, "cycles": part}
    assert native_trial.failed_parts({**good, "mixed_run": part}) == []
    leak = {**part, "rss_mb_last": 40.0, "failures": 2}
    bad = {**good, "processes": {"fork": False}, "threads": {"same": False}, "mixed_run": leak}
    assert native_trial.failed_parts(bad) == [
        "processes by fork",
        "threads",
        "2 failures in mixed_run",
        "memory grows in mixed_run",
    ]
    assert native_trial.slope([0.0, 1.0, 2.0], [1.0, 3.0, 5.0]) == pytest.approx(2.0)
