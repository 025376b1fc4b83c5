"""Lanes do not know of each other: neither their order nor the threads matter."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lane_runs import PROPERTY, assert_equal_runs, configs, plan, run, seeds

from warpzone.env.vector import MarioVectorEnv


@PROPERTY
@given(config=configs, seed=seeds, order=st.permutations(range(4)))
def test_permuting_lanes_permutes_results(
    rom: bytes, config: dict[str, Any], seed: int, order: list[int]
) -> None:
    actions = plan(seed, 25, 4)
    lane_seeds = [seed + lane for lane in range(4)]
    env = MarioVectorEnv(4, rom=rom, num_threads=1, **config)
    env.reset(seed=lane_seeds)
    straight = run(env, actions)
    env.reset(seed=[lane_seeds[lane] for lane in order])
    permuted = run(env, actions[:, order])
    assert_equal_runs(permuted, straight, np.array(order))
    env.close()


@PROPERTY
@given(config=configs, seed=seeds, threads=st.integers(2, 5))
def test_thread_count_does_not_matter(
    rom: bytes, config: dict[str, Any], seed: int, threads: int
) -> None:
    actions = plan(seed, 20, 5)
    runs = []
    for count in (1, threads):
        env = MarioVectorEnv(5, rom=rom, num_threads=count, **config)
        env.reset(seed=seed)
        runs.append(run(env, actions))
        env.close()
    assert_equal_runs(*runs)


@PROPERTY
@given(config=configs, seed=seeds)
def test_a_lane_alone_plays_as_among_others(rom: bytes, config: dict[str, Any], seed: int) -> None:
    actions = plan(seed, 25, 3)
    env = MarioVectorEnv(3, rom=rom, num_threads=1, **config)
    env.reset(seed=[seed, seed + 1, seed + 2])
    together = run(env, actions)
    env.close()
    alone = MarioVectorEnv(1, rom=rom, num_threads=1, **config)
    alone.reset(seed=seed + 1)
    assert_equal_runs(run(alone, actions[:, 1:2]), together, np.array([1]))
    alone.close()
