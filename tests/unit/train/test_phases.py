"""What a run says it is doing while it does it, and what its time is spent on."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_runs import Recorder, tiny

from warpzone.eval.cases import Outcome
from warpzone.health import heartbeat as heartbeats
from warpzone.health.heartbeat import Heartbeat
from warpzone.health.pulse import Pulse
from warpzone.observers import control as controls
from warpzone.observers.control import ControlObserver
from warpzone.run import control
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.control import Command
from warpzone.train import evaluator
from warpzone.train.loop import Run


def outcomes(clears: int) -> list[Outcome]:
    return [
        Outcome("1-1", "argmax", delay, delay < clears, 9, 9, 9, 9.0, "flag") for delay in range(31)
    ]


def test_evaluations_and_checkpoints_have_a_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat that falls into one of them says so."""
    run = Run(tiny(runs_dir=str(tmp_path), checkpoint_interval=1, eval_interval=64))
    seen: list[str] = []
    write = Checkpoints.write

    def evaluate(*_: Any, each_step: Callable[[], None]) -> list[Outcome]:
        seen.append(run.pulse.phase)
        return outcomes(0)

    def noted(self: Checkpoints, snapshot: Any) -> Any:
        seen.append(run.pulse.phase)
        return write(self, snapshot)

    monkeypatch.setattr(evaluator, "evaluate", evaluate)
    monkeypatch.setattr(Checkpoints, "write", noted)
    run.train(Recorder())  # type: ignore[arg-type]
    # Three updates; an evaluation after the second and at the end.
    assert seen == ["checkpoint", "eval", "checkpoint", "checkpoint", "eval"]


def test_a_heartbeat_knows_the_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([100.0, 102.0, 110.0])
    fake = SimpleNamespace(monotonic=lambda: next(clock), time=lambda: 5.0)
    counters = iter([(3, 300), (5, 500), (8, 800)])
    written: list[dict[str, Any]] = []
    beat = Heartbeat(Pulse(), lambda: next(counters), written.append)
    monkeypatch.setattr(heartbeats, "time", fake)
    for _ in range(3):
        beat.beat()
    speeds = [(line["updates_per_sec"], line["steps_per_sec"]) for line in written]
    assert speeds == [(None, None), (1.0, 100.0), (0.5, 50.0)]


def test_a_pause_is_no_part_of_the_time_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of it, by a clock of its own."""
    run = Run(tiny(runs_dir=str(tmp_path), max_time=30.0))
    observer = ControlObserver()
    hours = iter(range(0, 10**6, 3600))

    def sleep(seconds: float) -> None:
        control.send(run.folder.path, Command.new("test", "resume"))

    fake = SimpleNamespace(
        perf_counter=lambda: float(next(hours)), sleep=sleep, monotonic=float, time=float
    )
    try:
        observer.started(run)
        monkeypatch.setattr(controls, "time", fake)
        control.send(run.folder.path, Command.new("test", "pause"))
        before = run.started
        observer.between(run, Recorder())  # type: ignore[arg-type]
        assert run.started - before == pytest.approx(3600.0)
    finally:
        run.close()


@pytest.mark.parametrize(("wanted", "updates"), [(0, 6), (2, 2), (3, 2), (4, 6)])
def test_a_run_stops_at_as_many_clears_as_are_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: int, updates: int
) -> None:
    """Three are cleared in every evaluation, the first after two updates."""
    monkeypatch.setattr(evaluator, "evaluate", lambda *_, each_step: outcomes(3))
    config = tiny(runs_dir=str(tmp_path), eval_interval=64, max_steps=6 * 32, stop_at_clears=wanted)
    run = Run(config)
    run.train(Recorder())  # type: ignore[arg-type]
    assert (run.global_update, run.evaluator.best_clears) == (updates, 3)


def test_a_run_ends_when_its_time_is_up(tmp_path: Path) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), max_time=10.0, max_steps=32 * 3))
    try:
        run.started -= 601.0
        run.learn(Recorder())  # type: ignore[arg-type]
        assert run.global_update == 0
        run.started += 590.0
        run.learn(Recorder())  # type: ignore[arg-type]
        assert run.global_update == 3
    finally:
        run.close()
