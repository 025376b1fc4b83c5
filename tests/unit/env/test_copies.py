"""Environments can be copied and pickled; the copy plays on exactly as the original does."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from warpzone import rom as roms
from warpzone.env.single import MarioEnv
from warpzone.env.vector import MarioVectorEnv

#: Draws of every kind: stages, delays, powers, halfway pages, sticky actions.
DRAWS: dict[str, Any] = {
    "stages": "1-1..1-4",
    "start_delay": (0, 9),
    "start_power": "any",
    "start_halfway": 0.3,
    "sticky": 0.1,
    "time_limit": 12,
    "size": 16,
}


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


def assert_twins(one: MarioVectorEnv, other: MarioVectorEnv, steps: int = 40) -> None:
    """Same results of the same actions, through ends and resets."""
    for step in range(steps):
        actions = np.random.default_rng(step).integers(0, 7, one.num_envs)
        mine: Any = one.step(actions)
        theirs: Any = other.step(actions)
        for index in range(4):
            assert np.array_equal(mine[index], theirs[index]), step
        for name in ("x_pos", "power", "start_stage", "start_delay", "restart", "forced"):
            assert np.array_equal(mine[4][name], theirs[4][name]), (step, name)


@pytest.mark.parametrize("make_copy", [copy.deepcopy, pickled])
@pytest.mark.parametrize("timing", ["vblank", "nes-py"])
def test_vector(make_copy: Callable[[Any], Any], timing: str) -> None:
    env = MarioVectorEnv(3, rom="eu", timing=timing, **DRAWS)
    env.reset(seed=3)
    for _ in range(7):
        env.step(np.array([3, 4, 1]))
    twin = make_copy(env)
    assert twin.action_space == env.action_space
    assert twin.observation_space == env.observation_space
    assert_twins(env, twin)
    env.close()
    twin.step(np.zeros(3, np.int64))
    twin.close()


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP", "DISABLED"])
def test_lanes_that_have_ended(mode: str) -> None:
    env = MarioVectorEnv(2, rom="eu", time_limit=3, autoreset_mode=mode, size=16)
    env.reset(seed=0)
    for _ in range(3):
        ended = env.step(np.array([3, 3]))[3]
    assert ended.all()
    twin = pickled(env)
    if mode == "DISABLED":
        with pytest.raises(RuntimeError, match="has ended"):
            twin.step(np.array([3, 3]))
        env.reset(), twin.reset()
    assert_twins(env, twin, 2)
    env.close()
    twin.close()


def test_what_was_told_between_steps() -> None:
    env = MarioVectorEnv(2, rom="eu", stages="1-1..1-4", size=16, time_limit=6)
    env.reset(seed=1)
    env.set_reward_weights({"step": -3.0, "pixel": 0.0})
    env.set_stage_weights({"1-1": 1.0, "1-2": 1.0})
    env.set_start_script("RIGHT+B:20")
    env.set_stages(1, "1-2,1-3")
    for _ in range(5):
        env.step(np.array([3, 3]))
    state, unwanted = env.save(0), env.save(1)
    env.add_restart(4, state, script="RIGHT:3")
    env.add_restart(5, unwanted)
    env.remove_restart(5)
    env.set_restart_share(0.5)
    twin = copy.deepcopy(env)
    assert twin._live().num_restarts() == 1
    assert_twins(env, twin, 60)
    assert env.step(np.array([0, 0]))[1].tolist() == [-3.0, -3.0]
    assert twin.step(np.array([0, 0]))[1].tolist() == [-3.0, -3.0]
    third = copy.deepcopy(twin)
    assert_twins(twin, third)
    for one in (env, twin, third):
        one.close()


def test_single() -> None:
    env = MarioEnv(rom="eu", **DRAWS)
    env.reset(seed=5)
    env.set_reward_weights({"step": -3.0, "pixel": 0.0})
    env.step(np.int64(3))
    twin = pickled(env)
    assert env.np_random.random() == twin.np_random.random()
    for _ in range(20):
        mine, theirs = env.step(np.int64(3)), twin.step(np.int64(3))
        assert np.array_equal(mine[0], theirs[0])
        assert mine[1:4] == theirs[1:4]
        assert mine[1] == -3.0
        if mine[2] or mine[3]:
            assert np.array_equal(env.reset()[0], twin.reset()[0])
    env.close()
    twin.close()


def test_before_the_first_reset() -> None:
    env = MarioVectorEnv(2, rom="eu", size=16, stages="1-1")
    env.set_stages(1, "4-2")
    twin = pickled(env)
    with pytest.raises(ResetNeeded):
        twin.step(np.array([0, 0]))
    assert twin.reset(seed=0)[1]["start_stage"].tolist() == [0, 13]
    env.close()
    with pytest.raises(ClosedEnvironmentError, match="closed"):
        pickle.dumps(env)


def test_in_another_process(tmp_path: Path) -> None:
    env = MarioEnv(rom="eu", size=16)
    env.reset(seed=2)
    file = tmp_path / "env.pickle"
    file.write_bytes(pickle.dumps(env))
    code = (
        "import pickle, sys; env = pickle.load(open(sys.argv[1], 'rb'));print(env.step(3)[0].sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) == int(env.step(np.int64(3))[0].sum())
    env.close()


def test_an_installed_rom_is_not_carried(rom: bytes) -> None:
    env = MarioVectorEnv(1, rom=rom, size=16)
    assert rom[:4096] not in pickle.dumps(env)
    env.close()


def test_a_rom_of_ones_own_is_found_again(rom: bytes, folders: Path) -> None:
    """Nothing is installed here: bytes are carried, a file is named and must be the same."""
    assert roms.installed() == []
    env = MarioVectorEnv(1, rom=rom, size=16, native=False)
    assert_started(pickled(env))
    env.close()
    file = folders / "own.nes"
    file.write_bytes(rom)
    env = MarioVectorEnv(1, rom=file, size=16, native=False)
    carried = pickle.dumps(env)
    env.close()
    assert rom[:4096] not in carried
    assert_started(pickle.loads(carried))
    file.write_bytes(rom[:-1] + bytes([rom[-1] ^ 1]))
    with pytest.raises(ValueError, match="another ROM"):
        pickle.loads(carried)
    file.unlink()
    with pytest.raises(FileNotFoundError, match="There is no file"):
        pickle.loads(carried)


def assert_started(env: MarioVectorEnv) -> None:
    assert env.reset(seed=0)[1]["start_stage"].tolist() == [0]
    env.close()
