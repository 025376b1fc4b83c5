"""Watched runs: what they leave behind, and how a stuck one ends."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from observed_runs import learn, observed
from tiny_runs import tiny

from warpzone.learn.learner import LearningError
from warpzone.observers.health import HealthObserver
from warpzone.train.loop import Run


def heartbeats(run: Run) -> list[dict[str, Any]]:
    text = (run.folder.path / "heartbeat.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


class Slow:
    """An engine that does something before the end of every step."""

    def __init__(self, run: Run, before: Callable[[], None]) -> None:
        group = run.collector.groups[0]
        self._vector = group.vector
        self._before = before
        group.vector = self  # type: ignore[assignment]

    def finish(self) -> None:
        self._before()
        self._vector.finish()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vector, name)


def test_a_run_leaves_heartbeats_from_start_to_end(tmp_path: Path) -> None:
    run = observed(tmp_path, HealthObserver, heartbeat_interval=0.01, monitor_interval=0.01)
    lines = heartbeats(run)
    assert lines[0]["phase"] == "start"
    assert lines[-1]["phase"] == "done"
    assert (lines[-1]["update"], lines[-1]["global_step"]) == (3, 96)
    assert lines[-1].keys() >= {"proc_mem_rss_mb", "proc_threads", "proc_children", "proc_fds"}
    assert lines[-1]["proc_cpu_percent"] >= 0
    assert {line["phase"] for line in lines[1:-1]} <= {"collect", "learn", "checkpoint", "start"}
    names = {thread.name for thread in threading.enumerate()}
    assert names.isdisjoint({"heartbeat", "monitor", "stall"})
    assert not (run.folder.path / "traces").exists()


def test_everything_can_be_switched_off(tmp_path: Path) -> None:
    off = {"heartbeat_interval": 0.0, "monitor_interval": 0.0, "stall_timeout": 0.0}
    before = threading.active_count()
    run = Run(tiny(runs_dir=str(tmp_path), **off, slow_step_trace_threshold=0), [])
    watcher = HealthObserver(run.config)
    watcher.started(run)
    assert run.pulse.on_step is None
    names = {thread.name for thread in threading.enumerate()}
    assert names.isdisjoint({"heartbeat", "monitor", "stall"})
    run.close()
    watcher.ended(run, "normal")
    assert threading.active_count() == before
    assert not (run.folder.path / "heartbeat.jsonl").exists()


@pytest.mark.parametrize("overlap", [False, True])
def test_slow_steps_leave_the_stacks(
    tmp_path: Path, overlap: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    # Every step is slow: 3 rollouts of 9 beats, and one trace after 10 of them for the window.
    run = observed(
        tmp_path,
        HealthObserver,
        step_timeout=1e-9,
        slow_step_trace_threshold=9,
        slow_step_trace_window=600.0,
        overlap_collect=overlap,
    )
    traces = sorted((run.folder.path / "traces").iterdir())
    assert len(traces) == 1
    assert all(path.name.startswith("slow_step_trace_") for path in traces)
    text = traces[-1].read_text()
    assert "in _collect" in text
    assert "MainThread" in text
    assert ("collector" in text.split("\n\n")[1]) == overlap
    assert "[train][warn] 10 steps of all lanes took longer than" in capsys.readouterr().err


def hangs(traces: Path) -> bool:
    return any("in hang" in trace.read_text() for trace in traces.glob("stall_*.log"))


def stuck_run(folder: Path, **changes: Any) -> Run:
    """A run whose engine hangs once, until the stacks say so; a slow machine may have been taken
    for a stuck one before."""
    config = tiny(runs_dir=str(folder), run_name="run", stall_timeout=0.2, **changes)
    run = Run(config, [HealthObserver(config)])
    traces = run.folder.path / "traces"
    hung = False

    def hang() -> None:
        nonlocal hung
        deadline = time.monotonic() + 300
        while not hung and not hangs(traces) and time.monotonic() < deadline:
            time.sleep(0.01)
        hung = True

    Slow(run, hang)
    return run


def test_a_stall_leaves_the_stacks_and_the_run_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = learn(stuck_run(tmp_path))
    assert run.global_step == 96
    assert hangs(run.folder.path / "traces")
    assert "in phase collect; stacks in" in capsys.readouterr().err
    assert heartbeats(run)[-1]["message"].startswith("no progress for")


def test_a_stall_can_end_the_run(tmp_path: Path) -> None:
    run = stuck_run(tmp_path, fail_on_stall=True)
    with pytest.raises(LearningError, match=r"no progress for .* \(--fail-on-stall\)"):
        learn(run)
    assert heartbeats(run)[-1]["phase"] == "interrupt"
    rows = (run.folder.path / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == run.global_update  # The update at hand was written down.


def test_a_stall_in_the_last_evaluation_ends_the_run_too(tmp_path: Path) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="run", stall_timeout=100.0, fail_on_stall=True)
    watcher = HealthObserver(config)
    run = Run(config, [watcher])
    watcher.started(run)
    try:
        watcher.evaluated(run, [])
        assert watcher._stall is not None
        watcher._stall.verdict = "no progress"
        with pytest.raises(LearningError, match="no progress"):
            watcher.evaluated(run, [])
    finally:
        watcher.ended(run, "exception")
        run.close()


def test_hints_are_said_and_carried_by_the_heartbeat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path)), [])
    watcher = HealthObserver(run.config)
    watcher.started(run)
    try:
        for update in range(1, 11):
            row = {"update": update, "env_distance_delta_sum": 0.0}
            watcher.updated(run, row, None)  # type: ignore[arg-type]
    finally:
        run.close()
        watcher.ended(run, "interrupt")
    assert capsys.readouterr().err.startswith("[train][hint] no lane has gained ground")
    last = heartbeats(run)[-1]
    assert last["phase"] == "interrupt"
    assert last["message"].startswith("hint: no lane has gained ground")
