"""Counting memory without allocating it, and refusing what cannot be had."""

import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from warpzone.collect.store import Store  # noqa: E402
from warpzone.config import ConfigError, TrainConfig  # noqa: E402
from warpzone.env.actions import action_table  # noqa: E402
from warpzone.model.agent import Agent  # noqa: E402
from warpzone.model.spec import model_spec  # noqa: E402
from warpzone.train import estimate, speed  # noqa: E402
from warpzone.train.speed import Speeds, _learning  # noqa: E402

SMALL = TrainConfig(
    num_envs=8, rollout_steps=16, minibatch=64, size=42, hidden_size=32, max_steps=512
)
CPU = torch.device("cpu")
CUDA = torch.device("cuda")


def held(store: Store) -> int:
    return sum(part.numel() * part.element_size() for part in vars(store).values())


@pytest.mark.parametrize("overlap", [False, True])
def test_rollouts_are_counted_as_they_are_allocated(overlap: bool) -> None:
    config = SMALL.replace(overlap_collect=overlap)
    memory = estimate.count_memory(config)
    real = held(Store(config, len(action_table(config.actions).masks), CPU))
    assert memory.device["rollouts"] + memory.host["rollouts"] == real * (1 + overlap)


@pytest.mark.parametrize("memory", ["none", "gru", "gtrxl"])
def test_parameters_are_those_of_the_network(memory: str) -> None:
    config = SMALL.replace(memory=memory)
    agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
    assert estimate.count_memory(config).parameters == sum(p.numel() for p in agent.parameters())


def test_a_larger_minibatch_leaves_more_behind() -> None:
    one, two = (estimate.count_memory(SMALL.replace(minibatch=size)) for size in (64, 128))
    assert two.device["a minibatch"] == 2 * one.device["a minibatch"] > 0
    assert two.device["rollouts"] == one.device["rollouts"]


def test_replay_and_averaged_weights_count() -> None:
    plain = estimate.count_memory(SMALL)
    config = SMALL.replace(algo="vtrace", epochs=1, per=True, per_memory_gb=0.5, ema=0.99)
    more = estimate.count_memory(config)
    assert more.device["replay"] == 2**29
    part = "network and optimiser"
    assert more.device[part] - plain.device[part] == 4 * plain.parameters


def test_a_replay_without_room_is_refused_before_the_run() -> None:
    config = SMALL.replace(algo="vtrace", epochs=1, per=True, per_memory_gb=1e-6)
    with pytest.raises(ConfigError, match="cannot hold one segment"):
        estimate.count_memory(config)


def test_what_arrives_with_every_step_is_on_the_host() -> None:
    steps, lanes = SMALL.rollout_steps, SMALL.num_envs
    # A reward, three answers to yes or no, and the age, of one step more.
    assert estimate.count_memory(SMALL).host["rollouts"] == lanes * (7 * steps + 8 * (steps + 1))


def test_replayed_steps_count_into_the_time() -> None:
    config = SMALL.replace(algo="vtrace", epochs=1, per_memory_gb=0.01, per_segments=24)
    agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
    done = []
    for changes in ({}, {"per": True}, {"per": True, "per_sample_interval": 3}):
        learn = _learning(config.replace(**changes), agent, CPU)
        done.append(sum(learn() for _ in range(4)))
    # Three segments for each lane: four times the work, or twice with every third update.
    assert done == [256, 64, 128]


def test_what_the_machine_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "free_host_memory", lambda: 1 << 34)
    estimate.refuse_impossible(SMALL, CPU)
    huge = SMALL.replace(num_envs=1 << 20, max_steps=1 << 30)
    with pytest.raises(ConfigError, match=r"rollouts.*16\.0 GiB are free.*--num-envs"):
        estimate.refuse_impossible(huge, CPU)
    with pytest.raises(ConfigError, match=r"network.*--hidden-size"):
        estimate.refuse_impossible(SMALL.replace(hidden_size=1 << 28), CPU)


def test_what_cannot_be_counted_is_refused() -> None:
    beyond = SMALL.replace(num_envs=1 << 40, rollout_steps=1 << 20, max_steps=1 << 60)
    with pytest.raises(ConfigError, match="more memory than can be counted"):
        estimate.count_memory(beyond)


def test_free_memory_is_known_here() -> None:
    free = estimate.free_host_memory()
    assert (free is not None and free > 0) or not Path("/proc/meminfo").exists()


def test_parts_share_a_cpu_and_overlap_beside_a_gpu() -> None:
    speeds = Speeds(engine=100.0, inference=50.0, learning=50.0)
    assert speeds.together(SMALL, CPU) == pytest.approx(20.0)
    assert speeds.together(SMALL, CUDA) == pytest.approx(25.0)
    assert speeds.together(SMALL.replace(overlap_collect=True), CUDA) == pytest.approx(50.0)
    assert speeds.together(SMALL.replace(groups=1), CUDA) == pytest.approx(20.0)


def test_a_prediction_says_under_what_load_it_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (3.25, 9.0, 9.0))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    monkeypatch.setattr(speed, "measure", lambda *_: speed.Speeds(100.0, 100.0, 100.0))
    text = speed.forecast(SMALL, CPU)
    assert "(measured for a moment beside a load of 3.2 on 2 cores: engine 100" in text


def test_a_forecast_says_when_the_run_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (3.25, 9.0, 9.0))
    monkeypatch.setattr(speed, "measure", lambda config, device: Speeds(100.0, 50.0, 50.0))
    said = speed.forecast(SMALL.replace(max_steps=72_000), CPU)
    assert said.startswith("about 60 min for 72,000 steps at about 20 steps/s (measured")
    assert said.endswith("engine 100, inference 50, learning 50 steps/s)")
    config = SMALL.replace(max_steps=72_000, max_time=30.0, stop_at=0.9, stages="1-1,1-2")
    more = speed.forecast(config, CPU).removeprefix(said)
    assert more == "; stops after 30 min; stops once 56 of 62 start delays are cleared"
