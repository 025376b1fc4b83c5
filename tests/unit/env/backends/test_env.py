"""Games of other back-ends behave as Gymnasium's environments, whatever is called when."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from backend_rigs import QUICK
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env

from warpzone.env.backends import BackendEnv, BackendError, BackendVectorEnv

WALK = "backend_games:walk"
RIGHT, STAND = 1, 0
TWO = np.array([RIGHT, RIGHT])


@pytest.fixture(params=["one process", "workers"])
def envs(request: pytest.FixtureRequest) -> Iterator[BackendVectorEnv]:
    sync = request.param == "one process"
    made = BackendVectorEnv(WALK, 2, rom="eu", sync=sync, settings=QUICK, size=20, frame_skip=1)
    yield made
    made.close()


def test_order_of_calls(envs: BackendVectorEnv) -> None:
    mask = {"reset_mask": np.array([True, False])}
    with pytest.raises(ResetNeeded):
        envs.step(TWO)
    with pytest.raises(ResetNeeded):
        envs.reset(options=mask)
    envs.reset(seed=1)
    _, _, _, _, infos = envs.step(TWO)
    # No worker was lost over the step that was too early.
    assert not envs.lanes.counters().get("env_worker_restarts")
    assert infos["x_pos"].tolist() == [43, 43]
    _, infos = envs.reset(options=mask)
    assert infos["_x_pos"].tolist() == [True, False]
    envs.close()
    envs.close()
    for call in (lambda: envs.step(TWO), envs.reset, envs.shaping):
        with pytest.raises(ClosedEnvironmentError):
            call()


def test_steering(envs: BackendVectorEnv) -> None:
    envs.reset(seed=1)
    nothing = {"pixel": 0.0, "step": 0.0, "flag": 0.0, "death": 0.0}
    envs.set_reward_weights({**nothing, "pixel": 1.0})
    assert envs.step(TWO)[1].tolist() == [3.0, 3.0]
    assert envs.shaping()["env_shaping_raw_sum"] == 6.0
    envs.force("RIGHT:2", [1])
    infos = envs.step(np.array([STAND, STAND]))[4]
    assert infos["x_pos"].tolist() == [43, 46]
    assert infos["forced"].tolist() == [0, 1]
    with pytest.raises(IndexError, match="lane 2"):
        envs.force("RIGHT:2", [2])
    envs.set_start_script("RIGHT:1")
    envs.reset()
    assert envs.step(np.array([STAND, STAND]))[4]["x_pos"].tolist() == [43, 43]


def test_seeds_of_a_masked_reset_are_its_lanes() -> None:
    """The others go on with the random stream they have."""
    drawn = []
    for masked in (False, True):
        envs = BackendVectorEnv(WALK, 2, rom="eu", sync=True, size=20, start_delay=(0, 1000))
        envs.reset(seed=1)
        if masked:
            envs.reset(seed=7, options={"reset_mask": np.array([True, False])})
        drawn.append(envs.reset()[1]["start_delay"].tolist())
        envs.close()
    assert drawn[0][0] != drawn[1][0]
    assert drawn[0][1] == drawn[1][1]


def test_single_environment() -> None:
    env = BackendEnv(WALK, rom="eu", size=20, time_limit=3)
    with pytest.raises(ResetNeeded):
        env.step(RIGHT)
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    assert env.shaping()["env_shaping_steps"] > 0
    with pytest.raises(ValueError, match="'lives'"):
        env.reset(options={"lives": 3})
    assert [env.step(RIGHT)[3] for _ in range(3)] == [False, False, True]
    with pytest.raises(ResetNeeded, match="over"):
        env.step(RIGHT)
    env.reset()
    env.close()
    env.close()
    for call in (lambda: env.step(RIGHT), env.reset, env.ram):
        with pytest.raises(ClosedEnvironmentError):
            call()


def test_the_rom_goes_with_an_environment_that_nobody_closed() -> None:
    env = BackendEnv(WALK, rom="eu")
    path = env._rom.path
    assert path.is_file()
    del env
    gc.collect()
    assert not path.parent.exists()


@pytest.mark.parametrize("backend", ["native", "snes", ""])
def test_names_of_none_are_refused(backend: str) -> None:
    with pytest.raises(BackendError, match="no other back-end"):
        BackendEnv(backend, rom="eu")
