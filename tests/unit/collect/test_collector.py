"""Rollouts against the slow reference, lane by lane."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from reference_collector import ReferenceLane
from rollouts import check
from tiny_runs import CPU, make_agent, make_collector, tiny

from warpzone import rom
from warpzone.algo.losses import log_prob_of
from warpzone.collect.lanes import lane_seeds
from warpzone.collect.streams import generator
from warpzone.config import TrainConfig
from warpzone.data.stacking import stack_sequence
from warpzone.data.types import Rollout
from warpzone.learn.learner import Learner
from warpzone.rom import native

MEMORIES = ("none", "gru", "lstm", "gtrxl")
ROLLOUTS = 4
FLOATS = ("logits", "log_prob", "values", "last_value", "final_value")


def of_lane(rollout: Rollout, lane: int) -> dict[str, NDArray[Any]]:
    """What the reference calls the same things."""
    names: tuple[str, ...] = (
        "age",
        "previous_actions",
        "actions",
        "logits",
        "log_prob",
        "values",
        "final_value",
    )
    names += ("rewards", "terminated", "truncated")
    found = {name: getattr(rollout, name)[:, lane] for name in names}
    found["obs"] = stack_sequence(rollout.frames, rollout.age)[:, lane]
    found["last_value"] = rollout.last_value[lane : lane + 1]
    found |= {f"state{index}": part[lane] for index, part in enumerate(rollout.state)}
    return {name: value.numpy() for name, value in found.items()}


def compare(config: TrainConfig, *, exact: bool) -> tuple[int, int]:
    """Several rollouts of every lane against the reference; returns how many episodes ended."""
    agent = make_agent(config)
    image = rom.find(config.rom)
    seeds = lane_seeds(config.seed, slice(0, config.num_envs))
    lanes = [ReferenceLane(config, agent, image, native.load(image), seed) for seed in seeds]
    sampling = generator(config.seed, "actions")
    collector = make_collector(config, agent)
    terminated = truncated = 0
    try:
        for _ in range(ROLLOUTS):
            rollout = collector.collect()
            check(rollout)
            shape = (config.rollout_steps, config.num_envs, agent.spec.actions)
            uniform = torch.rand(shape, generator=sampling)
            for index, lane in enumerate(lanes):
                expected, got = lane.rollout(uniform[:, index]), of_lane(rollout, index)
                assert expected.keys() == got.keys()
                for name, value in expected.items():
                    value = value.astype(got[name].dtype)
                    if exact or not (name in FLOATS or name.startswith("state")):
                        np.testing.assert_array_equal(got[name], value, err_msg=name)
                    else:
                        np.testing.assert_allclose(got[name], value, 1e-4, 1e-5, err_msg=name)
            terminated += int(rollout.terminated.sum())
            truncated += int(rollout.truncated.sum())
    finally:
        collector.close()
    return terminated, truncated


@pytest.mark.parametrize("memory", MEMORIES)
def test_rollouts_are_those_of_single_lanes(memory: str) -> None:
    # A group for each lane: the network sees one lane at a time here and there, so that not one
    # bit may differ.
    config = tiny(
        num_envs=3, groups=3, minibatch=24, memory=memory, previous_action=True, frame_stack=3
    )
    _, truncated = compare(config, exact=True)
    assert truncated > 3


def test_lanes_side_by_side() -> None:
    # Long enough that Mario dies, too.
    config = tiny(
        num_envs=4, groups=1, rollout_steps=24, minibatch=96, stagnation_limit=6, start_delay=0
    )
    terminated, truncated = compare(config, exact=False)
    assert terminated > 0
    assert truncated > 0


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("noisy", [False, True])
def test_the_learner_sees_what_the_actor_saw(memory: str, noisy: bool) -> None:
    config = tiny(memory=memory, noisy=noisy, previous_action=True)
    agent = make_agent(config)
    agent.resample_noise(torch.Generator().manual_seed(3))
    collector = make_collector(config, agent)
    learner = Learner(config, agent, CPU)
    try:
        for _ in range(2):
            rollout = collector.collect()
            with torch.no_grad():
                logits, values = learner.network.sequence(rollout)
            torch.testing.assert_close(logits[:-1], rollout.logits, rtol=0, atol=2e-6)
            torch.testing.assert_close(values[:-1], rollout.values, rtol=0, atol=2e-6)
            torch.testing.assert_close(values[-1], rollout.last_value, rtol=0, atol=2e-6)
            ratio = (log_prob_of(logits[:-1], rollout.actions) - rollout.log_prob).exp()
            torch.testing.assert_close(ratio, torch.ones_like(ratio), rtol=0, atol=2e-6)
    finally:
        collector.close()
