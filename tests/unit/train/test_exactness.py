"""A run that is stopped and resumed is, bit for bit, the run that was not."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from kept_ways import PRACTISED
from tiny_runs import Recorder, same, tiny

from warpzone.config import ConfigError, TrainConfig
from warpzone.observers.observer import Observer
from warpzone.run.lock import RunLock
from warpzone.run.reader import read_rows
from warpzone.run.resume import find_start
from warpzone.train.loop import Run
from warpzone.train.saving import state_of

PER = {"algo": "vtrace", "per": True, "per_memory_gb": 0.01, "per_segments": 4}
UPDATES = 12
KINDS: dict[str, dict[str, Any]] = {
    "none": {
        "epochs": 2,
        "noisy": True,
        "sticky": 0.2,
        "start_power": "any",
        "start_halfway": 0.3,
    },
    "gru": {"memory": "gru", "ema": 0.9, "previous_action": True},
    "per": {**PER, "memory": "gru", "per_burn_in": 2, "per_sample_interval": 2},
    "interval": {**PER, "per_interval_max": 4, "augment_shift": 2},
    "guided": {
        "stages": "1-1,1-2",
        "curriculum": "clear-rate",
        "archive_share": 0.5,
        "augment_shift": 2,
        "adaptive": True,
        "adaptive_window": 4,
        "adaptive_cooldown": 2,
        "reward_distance_weight_final": 0.01,
        "reward_distance_weight_anneal_steps": 200,
        "scripted_sequence": "RIGHT+B:20",
        "scripted_share": 1.0,
        "memory": "lstm",
    },
    "ways": PRACTISED,
    "overlap": {"overlap_collect": True, "noisy": True, "checkpoint_interval": 3},
}


def config(folder: Path, **changes: Any) -> TrainConfig:
    values = {"max_steps": UPDATES * 32, "checkpoint_minutes": 0.0, "run_name": "one"}
    return tiny(runs_dir=str(folder), **{**values, **changes})


def learn(settings: TrainConfig, updates: int = UPDATES) -> Run:
    """One life of a run: from where the last one ended to so many updates."""
    start = find_start(settings, print)
    run = Run(settings, start=start)
    try:
        run.done = _until(run, updates)  # type: ignore[method-assign]
        run.learn(Recorder())  # type: ignore[arg-type]
        run.save("interrupt")
    finally:
        run.close()
    return run


def _until(run: Run, updates: int) -> Any:
    return lambda ahead=0: run.global_update + ahead >= updates


def equal(first: Any, second: Any, where: str = "") -> None:
    """Every number of two states."""
    assert type(first) is type(second), where
    if isinstance(first, torch.Tensor):
        assert torch.equal(first, second), where
    elif isinstance(first, dict):
        assert first.keys() == second.keys(), where
        for name in first:
            equal(first[name], second[name], f"{where}.{name}")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), where
        for index, pair in enumerate(zip(first, second, strict=True)):
            equal(*pair, f"{where}[{index}]")
    else:
        assert first == second, where


@pytest.mark.parametrize("kind", KINDS)
def test_three_interruptions_change_nothing(tmp_path: Path, kind: str) -> None:
    straight = learn(config(tmp_path / "straight", **KINDS[kind]))
    stops = sorted(random.Random(kind).sample(range(1, UPDATES), 3))
    if kind == "overlap":
        # What overlaps depends on where checkpoints are: they are where they would be anyway.
        stops = [3, 6, 9]
    settings = config(tmp_path / "stopped", resume="auto", **KINDS[kind])
    for updates in (*stops, UPDATES):
        torch.rand(3)  # What others draw between two lives is not the run's business.
        run = learn(settings, updates)
        assert run.global_update == updates
        assert run.notes == []
    assert same(run.agent, straight.agent)
    first, second = state_of(run, lanes=True), state_of(straight, lanes=True)
    for state in (first, second):
        del state["seconds"], state["random"]
    equal(first, second)
    practised = [len(one.collector.guide.ways.practices) for one in (run, straight)]
    assert practised == ([2, 2] if kind == "ways" else [0, 0])


def test_rows_are_there_once(tmp_path: Path) -> None:
    """Also those that were written after the checkpoint, by a life that ended badly."""
    settings = config(tmp_path, resume="auto")
    learn(settings, 3)
    learn(settings, 5)
    folder = tmp_path / "one"
    newest = folder / "checkpoints" / "ppo_world1_stage1_0000005.json"
    newest.with_suffix(".safetensors").write_bytes(b"cut off")
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"global_step": 19')
    run = learn(settings, 8)
    rows = list(read_rows(folder, "metrics.jsonl"))
    assert [row["update"] for row in rows] == list(range(1, 9))
    straight = learn(config(tmp_path / "straight"), 8)
    assert same(run.agent, straight.agent)
    episodes = [
        [(row["global_step"], row["lane"], row["episode_return"]) for row in read_rows(path, name)]
        for path in (folder, tmp_path / "straight" / "one")
        for name in ("episodes.jsonl",)
    ]
    assert episodes[0] == episodes[1]
    assert len(episodes[0]) > 5


def test_an_observer_goes_on(tmp_path: Path) -> None:
    class Counter(Observer):
        seen = 0

        def updated(self, *_: Any) -> None:
            self.seen += 1

        def state_dict(self) -> dict[str, Any]:
            return {"seen": self.seen}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.seen = state.get("seen", 0)

    settings = config(tmp_path, resume="auto", max_steps=96)
    for seen in (3, 4):
        settings = settings.replace(max_steps=32 * seen)
        counter = Counter()
        run = Run(settings, [counter], start=find_start(settings, print))
        run.learn(Recorder())  # type: ignore[arg-type]
        run.save()
        run.close()
        assert counter.seen == seen


def test_a_replay_that_is_too_large_starts_empty(tmp_path: Path) -> None:
    settings = config(tmp_path, resume="auto", checkpoint_replay_gb=0.0, **PER)
    learn(settings, 2)
    run = learn(settings, 3)
    assert any("the checkpoint has no replay" in note for note in run.notes)
    assert run.learner.replaying is not None
    assert run.learner.replaying.replay.size == 4  # Of the third update alone.


def test_fewer_lanes_go_on_as_they_were(tmp_path: Path) -> None:
    """The first ones; more than there were all start anew."""
    learn(config(tmp_path, resume="auto"), 2)
    changes = {"resume": "auto", "resume_relax_match": True}
    half = config(tmp_path, num_envs=2, **changes)
    run = Run(half, start=find_start(half, print))
    assert run.notes == []
    assert run.collector.state_dict()["age"].shape == (2,)
    run.close()
    more = config(tmp_path, num_envs=8, **changes)
    run = Run(more, start=find_start(more, print))
    assert run.notes == ["all games start again: there are 4 saved lanes, and 8 are needed"]
    run.learn(Recorder())  # type: ignore[arg-type]
    run.close()


def test_checkpoints_by_the_clock(tmp_path: Path) -> None:
    settings = config(tmp_path, checkpoint_minutes=1e-6, keep_last=2, max_steps=5 * 32)
    run = Run(settings)
    run.learn(Recorder())  # type: ignore[arg-type]
    assert [stem[-1] for stem in run.saver.checkpoints.stems()] == ["5", "4"]
    run.close()


def test_a_failure_in_the_middle_of_an_update(tmp_path: Path) -> None:
    """What was learned is kept; games that were under way are not trusted."""
    settings = config(tmp_path, resume="auto")
    run = Run(settings)

    real = run.learner.update

    def fails(rollout: Any, done: float, **others: Any) -> dict[str, float]:
        if run.global_update == 2:
            raise RuntimeError("the learner broke")
        return real(rollout, done, **others)

    run.learner.update = fails  # type: ignore[method-assign, assignment]
    with pytest.raises(RuntimeError, match="the learner broke"):
        run.train(Recorder())  # type: ignore[arg-type]
    start = find_start(settings, print)
    assert start.checkpoint is not None
    assert start.checkpoint.sidecar.reason == "exception"
    again = Run(settings, start=start)
    assert again.notes == ["all games start again: they were not saved"]
    assert again.global_update == 2
    assert again.collector.episodes.total == run.collector.episodes.total
    again.close()


def test_weights_that_are_not_numbers_are_not_saved(tmp_path: Path) -> None:
    run = Run(config(tmp_path, checkpoint_interval=1))

    def fails(*_: Any, **__: Any) -> dict[str, float]:
        next(run.agent.parameters()).data.fill_(float("nan"))
        raise RuntimeError("the learner broke")

    run.learner.update = fails  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="the learner broke"):
        run.train(Recorder())  # type: ignore[arg-type]
    assert run.saver.checkpoints.stems() == []


def test_the_folder_is_held_until_everybody_has_written(tmp_path: Path) -> None:
    class Last(Observer):
        def ended(self, run: Any, reason: str) -> None:
            with pytest.raises(ConfigError, match="another process"):
                RunLock(run.folder.path)
            heard.append(reason)

    heard: list[str] = []
    run = Run(config(tmp_path), [Last()])
    run.evaluate = lambda progress: None  # type: ignore[method-assign]
    run.train(Recorder())  # type: ignore[arg-type]
    assert heard == ["normal"]
    RunLock(run.folder.path).close()


def test_budgets_count_earlier_lives(tmp_path: Path) -> None:
    settings = config(tmp_path, resume="auto", max_time=60.0, max_cost_gpu_hours=2.0)
    run = Run(settings)
    run.started -= 59 * 60
    run.budget.gpu_seconds = 1.9 * 3600
    assert not run.done()
    run.save()
    run.close()
    run = Run(settings, start=find_start(settings, print))
    assert not run.done()
    run.started -= 61
    assert run.done()
    run.close()
    run = Run(settings, start=find_start(settings, print))
    run.budget.gpu_seconds += 0.2 * 3600
    assert run.done()
    run.close()


def test_a_checkpoint_while_a_rollout_is_under_way(tmp_path: Path) -> None:
    """Asked for from outside, it waits for the rollout, and leaves it out."""

    class Asks(Observer):
        def between(self, run: Any, progress: Any) -> None:
            if run.global_update == 2:
                assert run.driver.ahead
                run.save()

    settings = config(tmp_path, resume="auto", overlap_collect=True, max_steps=5 * 32)
    run = Run(settings, [Asks()])
    run.learn(Recorder())  # type: ignore[arg-type]
    run.close()
    again = Run(settings, start=find_start(settings, print))
    assert again.global_update == 2
    assert again.notes == []
    again.learn(Recorder())  # type: ignore[arg-type]
    assert again.global_update == 5
    again.close()
