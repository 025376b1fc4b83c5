"""save -> load is the same future; a clone is a twin."""

from typing import Any

import numpy as np
from hypothesis import given
from lane_runs import PROPERTY, assert_equal_runs, configs, plan, run, seeds

from warpzone.env.vector import MarioVectorEnv


@PROPERTY
@given(config=configs, seed=seeds)
def test_load_gives_the_same_future(rom: bytes, config: dict[str, Any], seed: int) -> None:
    env = MarioVectorEnv(2, rom=rom, num_threads=1, **config)
    env.reset(seed=seed)
    run(env, plan(seed, 12, 2))
    saved = [env.save(lane) for lane in range(2)]
    observed = [env.observation(lane) for lane in range(2)]
    future = plan(seed + 1, 25, 2)
    first = run(env, future)

    other = MarioVectorEnv(2, rom=rom, num_threads=1, **config)
    other.reset(seed=seed + 2)
    for lane in range(2):
        other.load(lane, saved[lane])
        assert np.array_equal(other.observation(lane), observed[lane])
        assert other.save(lane) == saved[lane]
    assert_equal_runs(first, run(other, future))
    env.close()
    other.close()


@PROPERTY
@given(config=configs, seed=seeds)
def test_a_clone_is_a_twin(rom: bytes, config: dict[str, Any], seed: int) -> None:
    env = MarioVectorEnv(3, rom=rom, num_threads=1, **config)
    env.reset(seed=seed)
    run(env, plan(seed, 12, 3))
    env.clone(0, 2)
    assert env.save(0) == env.save(2)
    future = plan(seed + 1, 25, 3)
    future[:, 2] = future[:, 0]
    for obs, reward, terminated, truncated, infos, rams in run(env, future):
        for array in (obs, reward, terminated, truncated, rams, *infos.values()):
            assert np.array_equal(array[0], array[2])
    env.close()
