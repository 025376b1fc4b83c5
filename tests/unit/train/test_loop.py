"""Whole runs: the same seed gives the same weights, and what fails is heard."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import Recorder, learn, same, tiny

from warpzone.collect.lanes import LaneGroup
from warpzone.config import ConfigError
from warpzone.learn.learner import Learner
from warpzone.observers.make import make_observers
from warpzone.run.lock import RunLock
from warpzone.run.resume import find_start
from warpzone.train import loop
from warpzone.train.loop import Run

PER = {"algo": "vtrace", "per": True, "per_memory_gb": 0.01, "per_segments": 4}


def threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("collector")]


@pytest.mark.parametrize(
    "changes",
    [
        {"epochs": 2, "noisy": True},
        {**PER, "memory": "gru", "per_burn_in": 2},
        {"memory": "gtrxl", "algo": "a2c", "ema": 0.9},
        {"overlap_collect": True, "noisy": True},
    ],
    ids=["ppo", "vtrace", "a2c", "overlap"],
)
def test_engine_threads_do_not_change_a_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    one, first = learn(tmp_path / "one", num_threads=1, **changes)
    two, second = learn(tmp_path / "two", num_threads=2, **changes)
    assert same(one.agent, two.agent)
    names = ("loss_total", "entropy", "grad_norm", "global_step")
    for a, b in zip(first.rows, second.rows, strict=True):
        assert [a[name] for name in names] == [b[name] for name in names]


def test_a_second_run_in_one_process_is_the_first_again(tmp_path: Path) -> None:
    first, _ = learn(tmp_path / "first", **PER)
    torch.rand(17)  # What others draw is not the run's business.
    second, _ = learn(tmp_path / "second", **PER)
    other, _ = learn(tmp_path / "other", seed=8, **PER)
    assert same(first.agent, second.agent)
    assert not same(first.agent, other.agent)
    assert threads() == []


def test_grouping_changes_no_game(tmp_path: Path) -> None:
    # A lane's random numbers do not depend on its group. Beyond the first update weights may
    # differ in the last bits: the network sums in another order for another number of lanes.
    games = []
    for groups in (1, 2, 4):
        run = Run(tiny(runs_dir=str(tmp_path / str(groups)), groups=groups))
        games.append(run.driver.play().rollout)
        run.collector.close()
    for game in games[1:]:
        assert torch.equal(game.actions, games[0].actions)
        assert torch.equal(game.frames, games[0].frames)
        assert torch.equal(game.rewards, games[0].rewards)


def test_overlap_lags_by_one_update(tmp_path: Path) -> None:
    _, shown = learn(tmp_path, max_steps=5 * 32, overlap_collect=True)
    assert [row["policy_lag"] for row in shown.rows] == [0, 1, 1, 1, 1]
    _, serial = learn(tmp_path / "serial", max_steps=3 * 32)
    assert [row["policy_lag"] for row in serial.rows] == [0, 0, 0]
    assert threads() == []


@pytest.mark.parametrize("overlap", [False, True])
def test_the_learner_knows_whether_older_weights_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overlap: bool
) -> None:
    told: list[bool] = []
    update = Learner.update

    def noted(self: Learner, *words: Any, behind: bool) -> dict[str, float]:
        told.append(behind)
        return update(self, *words, behind=behind)

    monkeypatch.setattr(Learner, "update", noted)
    learn(tmp_path, max_steps=4 * 32, algo="appo", overlap_collect=overlap)
    assert told == [False, overlap, overlap, overlap]


def test_overlapped_policy_stays_still_while_it_plays(tmp_path: Path) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), overlap_collect=True, lr=0.1))
    try:
        collected = run.driver.play()
        before = [parameter.clone() for parameter in run.policies.acting.parameters()]
        run.learner.update(collected.rollout, 0.0)
        after = list(run.policies.acting.parameters())
        assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
        assert not same(run.policies.acting, run.agent)
        run.driver.hand_over()
        assert same(run.policies.acting, run.agent)
    finally:
        run.collector.close()


def test_noise_is_drawn_once_for_each_rollout(tmp_path: Path) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), overlap_collect=True, noisy=True))
    try:
        first = run.driver.play()
        played = [noise.clone() for noise in run.policies.acting.buffers()]
        assert any(noise.abs().sum() > 0 for noise in played)
        run.driver.hand_over()  # The next rollout has new noise; this one is learned with its own.
        learned = list(run.agent.buffers())
        assert all(torch.equal(a, b) for a, b in zip(played, learned, strict=True))
        fresh = list(run.policies.acting.buffers())
        assert not all(torch.equal(a, b) for a, b in zip(played, fresh, strict=True))
        with torch.no_grad():
            logits, _ = run.learner.network.sequence(first.rollout)
        torch.testing.assert_close(logits[:-1], first.rollout.logits, rtol=0, atol=2e-6)
        quiet = run.evaluated_agent()
        assert all(noise.abs().sum() == 0 for noise in quiet.buffers())
        assert any(noise.abs().sum() > 0 for noise in run.agent.buffers())
    finally:
        run.collector.close()


def test_evaluation_uses_the_average(tmp_path: Path) -> None:
    run, _ = learn(tmp_path, ema=0.9, lr=0.01)
    assert run.learner.ema is not None
    averaged = run.evaluated_agent()
    assert not same(averaged, run.agent)
    saved = run.learner.ema.state_dict()["averages"]
    assert all(torch.equal(value, saved[name]) for name, value in averaged.state_dict().items())
    plain, _ = learn(tmp_path / "plain")
    assert plain.evaluated_agent() is plain.agent


class Broken:
    """An engine that fails after some steps."""

    def __init__(self, group: LaneGroup, steps: int, error: type[Exception] = RuntimeError) -> None:
        self._vector = group.vector
        self._left = steps
        self._error = error
        self.closed = False
        group.vector = self  # type: ignore[assignment]

    def finish(self) -> None:
        self._left -= 1
        self._vector.finish()
        if self._left < 0:
            raise self._error("the engine broke")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._vector, name)

    def close(self) -> None:
        self.closed = True
        self._vector.close()


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("steps", [0, 5, 20])
def test_a_broken_engine_ends_the_run(tmp_path: Path, overlap: bool, steps: int) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), overlap_collect=overlap))
    broken = Broken(run.collector.groups[1], steps)
    with pytest.raises(RuntimeError, match="the engine broke") as caught:
        run.train(Recorder())  # type: ignore[arg-type]
    assert "finish" in [entry.name for entry in caught.traceback]  # Down to where it happened.
    assert broken.closed
    assert threads() == []


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("error", [ValueError, OSError])
def test_a_broken_collector_is_no_bad_input(
    tmp_path: Path, overlap: bool, error: type[Exception]
) -> None:
    # The command line makes one sentence of these; a collector that fails is to leave its trace.
    run = Run(tiny(runs_dir=str(tmp_path), overlap_collect=overlap))
    Broken(run.collector.groups[1], 5, error)
    with pytest.raises(RuntimeError, match="collecting failed: the engine broke") as caught:
        run.train(Recorder())  # type: ignore[arg-type]
    assert type(caught.value.__cause__) is error
    assert threads() == []


def test_a_failure_in_the_last_rollout_ahead_is_heard(tmp_path: Path) -> None:
    # The run is stopped by its clock while one more rollout is under way.
    run = Run(tiny(runs_dir=str(tmp_path), overlap_collect=True, max_time=1e-9, max_steps=320))
    Broken(run.collector.groups[0], 8)
    run.done = lambda ahead=0: run.global_update + ahead >= 1 and ahead == 0  # type: ignore
    with pytest.raises(RuntimeError, match="the engine broke"):
        run.train(Recorder())  # type: ignore[arg-type]
    assert threads() == []


def test_nothing_is_left_of_a_run_that_cannot_start(tmp_path: Path) -> None:
    run, _ = learn(tmp_path, run_name="mine")
    with pytest.raises(ConfigError, match="exists already"):
        Run(tiny(runs_dir=str(tmp_path), run_name="mine"))
    assert threads() == []
    rows = (run.folder.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(row)["update"] for row in rows] == [1, 2, 3]


@pytest.mark.parametrize("broken", ["Collector", "Saver"])
def test_what_was_opened_is_closed_when_the_rest_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    closed: list[int] = []
    close = LaneGroup.close

    def counted(group: LaneGroup) -> None:
        closed.append(1)
        close(group)

    monkeypatch.setattr(LaneGroup, "close", counted)

    def fails(*_: Any) -> None:
        raise RuntimeError("no memory for it")

    with monkeypatch.context() as patch:
        patch.setattr(loop, broken, fails)
        with pytest.raises(RuntimeError, match="no memory for it"):
            Run(tiny(runs_dir=str(tmp_path), run_name="mine"))
    assert len(closed) == 2
    folder = tmp_path / "mine"
    if folder.exists():
        RunLock(folder).close()


def test_a_run_of_days_on_a_cpu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = {"max_steps": 10**15, "run_name": "long"}
    monkeypatch.delenv("MARIO_ALLOW_CPU_AUTO", raising=False)
    with pytest.raises(ConfigError, match=r"would take \d+ hours on the CPU; lower --max-steps"):
        learn(tmp_path / "refused", **endless)
    # A budget of time is one, too.
    for allowed, changes in (("0", {"max_time": 60.0}), ("1", {})):
        monkeypatch.setenv("MARIO_ALLOW_CPU_AUTO", allowed)
        run = Run(tiny(runs_dir=str(tmp_path / allowed), **endless, **changes))
        run.done = lambda ahead=0, run=run: run.global_update >= 3  # type: ignore
        shown = Recorder()
        run.learn(shown)  # type: ignore[arg-type]
        run.close()
        assert run.global_update == 3
        assert (shown.rows[-1]["eta"] <= 3600) == bool(changes)


@pytest.mark.parametrize("there", ["nothing", "an empty folder", "something"])
def test_a_refused_run_leaves_nothing_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    monkeypatch.delenv("MARIO_ALLOW_CPU_AUTO", raising=False)
    folder = tmp_path / "long"
    if there != "nothing":
        folder.mkdir()
    if there == "something":
        (folder / "notes.txt").write_text("mine")
    config = tiny(runs_dir=str(tmp_path), run_name="long", max_steps=10**15, checkpoint_interval=1)
    run = Run(config, make_observers(config))
    with pytest.raises(ConfigError, match="hours on the CPU"):
        run.train(Recorder())  # type: ignore[arg-type]
    if there == "something":
        assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    else:
        assert not folder.exists()
    assert find_start(config.replace(resume="auto"), print).checkpoint is None


def test_a_run_that_goes_on_is_kept_when_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIO_ALLOW_CPU_AUTO", "1")
    config = tiny(runs_dir=str(tmp_path), run_name="long", max_steps=10**15)
    run = Run(config)
    run.done = lambda ahead=0: run.global_update >= 1  # type: ignore
    run.learn(Recorder())  # type: ignore[arg-type]
    run.save()
    run.close()
    monkeypatch.setenv("MARIO_ALLOW_CPU_AUTO", "0")
    again = config.replace(resume="auto")
    run = Run(again, start=find_start(again, print))
    with pytest.raises(ConfigError, match="hours on the CPU"):
        run.train(Recorder())  # type: ignore[arg-type]
    found = find_start(again, print).checkpoint
    assert found is not None
    assert found.sidecar.global_update == 2


def test_every_second_has_an_owner(tmp_path: Path) -> None:
    _, shown = learn(tmp_path)
    for row in shown.rows:
        owners = {name for name in row if name.startswith("time_")}
        assert owners >= {"time_engine", "time_inference", "time_copy", "time_learn", "time_log"}
        total = sum(row[name] for name in owners)
        assert total == pytest.approx(1.0 / row["updates_per_sec"], rel=1e-6)
