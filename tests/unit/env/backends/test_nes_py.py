"""The nes-py back-end plays as the native engine does when it is timed as nes-py is: the same seed
and actions give the same pictures, rewards, ends and infos."""

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from backend_rigs import QUICK, Rig, rig

from warpzone import _engine
from warpzone import rom as roms
from warpzone.env.actions import action_table
from warpzone.env.backends import nes_py
from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.env import BackendEnv, BackendVectorEnv
from warpzone.env.backends.interface import BackendError
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.env.walker import right_biased

pytest.importorskip("gym_super_mario_bros", reason="needs requirements-compare.lock")

SHAPED = {"pixel": 0.05, "score": 0.025, "scale": 0.3, "milestone": 2.0, "milestone_interval": 70}


def native_twin(options: Options, lanes: int) -> Rig:
    """The engine's own lanes, timed as nes-py."""
    timed = replace(options, timing="nes-py")
    image = roms.load_stored("eu").data
    return Rig(timed.make_vector(image, lanes, autoreset=_engine.Autoreset.SAME_STEP))


class Pair:
    """The same lanes twice."""

    def __init__(self, theirs: Rig, options: dict[str, Any]) -> None:
        self.theirs = theirs
        chosen = Options(**{"frame_stack": 1, "size": 42, **options})
        self.ours = native_twin(chosen, theirs.lanes.num_lanes)
        self.ends = 0

    def each(self, call: str, *values: Any) -> None:
        for side in (self.theirs, self.ours):
            getattr(side.lanes, call)(*values)

    def reset(self, *seeds: int) -> None:
        for side in (self.theirs, self.ours):
            side.reset(*seeds)
        self.compare("reset")

    def step(self, *actions: int) -> None:
        for side in (self.theirs, self.ours):
            side.step(*actions)
        self.compare(f"actions {actions}")
        self.ends += int((self.ours.terminated | self.ours.truncated).sum())

    def compare(self, what: str) -> None:
        for name, array in self.ours.arrays.items():
            np.testing.assert_array_equal(self.theirs.arrays[name], array, f"{name}, {what}")


MIXED = {
    "stages": "1-1,1-2,8-4",
    "start_delay": (0, 30),
    "sticky": 0.1,
    "time_limit": 20,
    "max_last_two": True,
    "mask_status_bar": True,
    "frame_stack": 2,
}


@pytest.mark.parametrize(
    "options",
    [
        {**MIXED, "reward": "progress"},
        {**MIXED, "reward": "shaped", "reward_weights": SHAPED, "start_script": "RIGHT+B:50"},
        {"reward": "gym", "stages": "game", "end": "game_over", "gray": False, "planar": True},
    ],
    ids=["progress", "shaped", "gym"],
)
def test_same_as_the_native_engine(options: dict[str, Any]) -> None:
    with rig("nes-py", 2, **options) as theirs:
        pair = Pair(theirs, options)
        pair.reset(11, 12)
        rng = np.random.default_rng(3)
        for _ in range(30):
            pair.step(*right_biased(rng, 2).tolist())
        ours, shaping = (side.lanes.take_shaping() for side in (pair.ours, pair.theirs))
        np.testing.assert_allclose(ours, shaping)
        assert np.array_equal(pair.ours.lanes.ram([0, 1]), theirs.lanes.ram([0, 1]))
        if "time_limit" in options:
            assert pair.ends > 0


def test_forced_buttons_and_changed_weights() -> None:
    """Into the first enemy by force, with weights that change on the way."""
    with rig("nes-py", 1) as theirs:
        pair = Pair(theirs, {})
        pair.reset(1)
        pair.each("force", [0], bytes([0x82]) * 200)
        for step in range(40):
            if step == 5:
                weights = _engine.RewardWeights(pixel=0.2, step=-0.1, flag=9.0, death=-3.0)
                pair.each("set_reward_weights", weights)
            pair.step(0)
            if pair.ends:
                break
        assert theirs.terminated[0]
        assert theirs.reward[0] < -2.0
        assert theirs.final_info[0, COLUMN["forced"]] == 1


def test_in_gymnasiums_vector_envs() -> None:
    """Plain Gymnasium code: the same games in its sync and async vector environments."""

    def make() -> gymnasium.Env[Any, Any]:
        return BackendEnv("nes-py", stages="1-1", size=42, frame_stack=2)

    results = []
    for kind in (gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv):
        envs = kind([make, make])
        obs, _ = envs.reset(seed=[3, 4])
        played = [obs.copy()]
        for _ in range(6):
            obs, reward, _, _, infos = envs.step(np.array([3, 4]))
            played += [obs.copy(), reward.copy(), infos["x_pos"].copy()]
        envs.close()
        results.append(played)
    for sync, apart in zip(*results, strict=True):
        np.testing.assert_array_equal(sync, apart)
    assert (results[0][-1] > 40).all()


def test_worker_killed_in_mid_step() -> None:
    """A real emulator is killed while it plays; its lane loses an episode, the run goes on."""
    envs = BackendVectorEnv(
        "nes-py", 2, settings=QUICK, stages="1-1", size=42, frame_stack=1, frame_skip=300
    )
    try:
        envs.reset(seed=1)
        victim = envs.lanes.pids()[0]  # type: ignore[attr-defined]
        # 300 frames take about a second: the kill falls into the step.
        threading.Timer(0.2, os.kill, (victim, signal.SIGKILL)).start()
        _, reward, terminated, truncated, infos = envs.step(np.array([0, 0]))
        assert truncated.tolist() == [True, False]
        assert not terminated.any()
        assert reward[0] == 0.0
        assert infos["_final_info"].tolist() == [True, False]
        assert envs.lanes.counters() == {"env_worker_restarts": 1}
        _, _, _, truncated, infos = envs.step(np.array([0, 0]))
        assert not truncated.any()
        assert (infos["x_pos"] > 0).all()
    finally:
        envs.close()


def test_action_table_reaches_the_game() -> None:
    table = action_table(["NOOP", "RIGHT+B"])
    with rig("nes-py", 1, actions=["NOOP", "RIGHT+B"]) as game:
        game.reset(1)
        for _ in range(8):
            game.step(1)
        assert game.info[0, COLUMN["buttons"]] == table.masks[1]
        assert game.info[0, COLUMN["x_pos"]] > 50


def test_repair_is_needed_and_small() -> None:
    """Without the repair NumPy 2 refuses the first read of x; RAM stays a view of the emulator."""
    with rig("nes-py", 1) as game:
        game.reset(1)
        env = game.lanes._machines[0]._env
        assert isinstance(env.ram[0x6D], int)
        assert env._x_position == 40
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            np.asarray(env.ram)[0x6D] * 0x100
        env.ram[0x75A] = 1
        assert game.lanes.ram([0])[0, 0x75A] == 1


def test_a_game_that_never_gets_on_is_an_error() -> None:
    with rig("nes-py", 1) as game:
        game.reset(1)
        env = game.lanes._machines[0]._env
        env.frames = nes_py.MAX_SCENE_FRAMES
        with pytest.raises(BackendError, match="did not get on"):
            env._frame_advance(0)


def test_a_rom_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="nes-py cannot load the ROM"):
        nes_py.NesPyMachine(str(tmp_path / "rom.nes"), Diagnostics())


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"needs gym, .* pip install 'warpzone\[compare\]'"):
        nes_py.check()


def test_repairs_are_made_once() -> None:
    from nes_py.nes_env import NESEnv

    log = Diagnostics()
    nes_py.patch(log)
    repaired = NESEnv._ram_buffer
    nes_py.patch(log)
    assert NESEnv._ram_buffer is repaired
