"""MarioVectorEnv: shapes, seeds, buffers, and what it says about bad input."""

import os
import sys
import threading
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from warpzone.env.infos import INFO_DOCS
from warpzone.env.vector import MarioVectorEnv
from warpzone.rom import RomError

RIGHT_B = 3


def play(env: MarioVectorEnv, steps: int, seed: int = 0) -> list[Any]:
    """Random actions; copies of everything that came back."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(steps):
        obs, reward, terminated, truncated, infos = env.step(rng.integers(0, 7, env.num_envs))
        out.append((obs.copy(), reward.copy(), terminated.copy(), truncated.copy(), infos))
    return out


def test_spaces_and_results_agree(rom: bytes) -> None:
    env = MarioVectorEnv(3, rom=rom)
    assert env.observation_space.shape == (3, 4, 84, 84)
    assert isinstance(env.single_action_space, Discrete)
    assert env.single_action_space.n == 7
    assert env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    obs, infos = env.reset(seed=0)
    assert obs in env.observation_space
    assert set(INFO_DOCS) == {name for name in infos if not name.startswith("_")}
    obs, reward, terminated, truncated, infos = env.step(env.action_space.sample())
    assert obs in env.observation_space
    assert reward.dtype == np.float32
    assert reward.shape == (3,)
    assert terminated.dtype == truncated.dtype == np.bool_
    for name in INFO_DOCS:
        assert len(infos[name]) == 3
        assert infos[f"_{name}"].tolist() == [True] * 3
    assert infos["flag_get"].dtype == np.bool_
    assert infos["enemies"].shape == (3, 5, 4)
    env.close()


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"size": 64, "frame_stack": 1}, (1, 64, 64)),
        ({"size": (60, 80), "frame_stack": 2}, (2, 60, 80)),
        ({"crop": (32, 8, 0, 0), "mask_status_bar": True}, (4, 84, 84)),
        ({"resize": "nearest", "max_last_two": True}, (4, 84, 84)),
        ({"size": (240, 256), "frame_stack": 1}, (1, 240, 256)),
    ],
)
def test_observation_options(rom: bytes, options: dict[str, Any], shape: tuple[int, ...]) -> None:
    with_env = MarioVectorEnv(2, rom=rom, **options)
    obs, _ = with_env.reset(seed=1)
    assert obs.shape == (2, *shape)
    assert obs.std() > 0
    play(with_env, 5)
    with_env.close()


def test_rgb_of_full_size_is_the_screen(rom: bytes) -> None:
    env = MarioVectorEnv(1, rom=rom, gray=False, size=(240, 256), frame_stack=1)
    env.reset(seed=0)
    obs, *_ = env.step(np.array([RIGHT_B]))
    assert np.array_equal(obs.reshape(240, 256, 3), env.screen(0))
    env.close()


def test_status_bar_is_masked(rom: bytes) -> None:
    options: dict[str, Any] = {"rom": rom, "size": (240, 256), "frame_stack": 1}
    plain, masked = MarioVectorEnv(1, **options), MarioVectorEnv(1, mask_status_bar=True, **options)
    seen, black = plain.reset(seed=0)[0][0, 0], masked.reset(seed=0)[0][0, 0]
    assert not black[:32].any()
    assert seen[:32].any()
    assert np.array_equal(seen[32:], black[32:])
    plain.close()
    masked.close()


def test_stack_is_oldest_first(rom: bytes) -> None:
    env = MarioVectorEnv(1, rom=rom, autoreset_mode="DISABLED")
    before, _ = env.reset(seed=0)
    assert all(np.array_equal(before[0, 0], before[0, i]) for i in range(4))
    for _ in range(5):
        obs, *_ = env.step(np.array([RIGHT_B]))
        assert np.array_equal(obs[0, :3], before[0, 1:])
        before = obs
    env.close()


def test_returned_arrays_are_never_written_again(rom: bytes) -> None:
    env = MarioVectorEnv(4, rom=rom)
    kept = [(obs, obs.copy()) for obs in [env.reset(seed=0)[0]]]
    rng = np.random.default_rng(0)
    for _ in range(30):
        obs, *_, infos = env.step(rng.integers(0, 7, 4))
        kept.append((obs[1], obs[1].copy()))
        kept.append((infos["x_pos"], infos["x_pos"].copy()))
    assert all(np.array_equal(now, then) for now, then in kept)
    env.close()


def test_seeds_make_runs_repeatable(rom: bytes) -> None:
    options: dict[str, Any] = {"rom": rom, "stages": "all", "start_delay": (0, 30), "sticky": 0.25}
    first, second = MarioVectorEnv(4, **options), MarioVectorEnv(4, num_threads=1, **options)
    starts = [env.reset(seed=11)[1]["start_stage"].tolist() for env in (first, second)]
    assert starts[0] == starts[1]
    assert first.reset(seed=12)[1]["start_stage"].tolist() != starts[0]
    first.reset(seed=11)
    for ours, theirs in zip(play(first, 40), play(second, 40), strict=True):
        for index in range(4):
            assert np.array_equal(ours[index], theirs[index])
    first.close()
    second.close()


def test_lanes_have_their_own_seeds(rom: bytes) -> None:
    env = MarioVectorEnv(16, rom=rom, stages="all", start_delay=(0, 60))
    infos = env.reset(seed=3)[1]
    assert len(set(infos["start_delay"].tolist())) > 4
    same = env.reset(seed=[5] * 16)[1]
    assert len(set(same["start_delay"].tolist())) == 1
    env.close()


def test_unseeded_environments_differ(rom: bytes) -> None:
    drawn = set()
    for _ in range(6):
        env = MarioVectorEnv(1, rom=rom, stages="all", start_delay=(0, 30))
        infos = env.reset()[1]
        drawn.add((int(infos["start_stage"][0]), int(infos["start_delay"][0])))
        env.close()
    assert len(drawn) > 1


def test_stages_per_lane_and_later_change(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, stages=[["1-2"], ["8-4"]])
    infos = env.reset(seed=0)[1]
    assert infos["world"].tolist() == [1, 8]
    env.set_stages(0, "4-1")
    assert env.reset()[1]["world"].tolist() == [4, 8]
    env.close()


def test_time_limit_truncates(rom: bytes) -> None:
    limits: list[dict[str, Any]] = [{"time_limit": 3}, {"max_episode_steps": 3}]
    for options in limits:
        env = MarioVectorEnv(1, rom=rom, **options)
        env.reset(seed=0)
        ends = [(bool(t[0]), bool(u[0])) for _, _, t, u, _ in play(env, 5)]
        assert ends == [(False, False)] * 2 + [(False, True)] + [(False, False)] * 2
        env.close()


def test_stagnation_truncates(rom: bytes) -> None:
    env = MarioVectorEnv(1, rom=rom, stagnation_limit=5)
    env.reset(seed=0)
    ends = [bool(env.step(np.array([0]))[3][0]) for _ in range(6)]
    assert ends == [False] * 4 + [True, False]
    env.close()


def test_progress_reward_uses_the_weights(rom: bytes) -> None:
    env = MarioVectorEnv(1, rom=rom, reward_weights={"pixel": 2.0, "step": -0.5, "clip": 0.0})
    env.reset(seed=0)
    before = env.info(0)["furthest_x"]
    for _ in range(20):
        reward = env.step(np.array([RIGHT_B]))[1]
        after = env.info(0)["furthest_x"]
        assert reward[0] == pytest.approx(2.0 * (after - before) - 0.5)
        before = after
    env.close()


def test_masked_reset(rom: bytes) -> None:
    env = MarioVectorEnv(3, rom=rom)
    env.reset(seed=0)
    last = play(env, 10)[-1]
    obs, infos = env.reset(options={"reset_mask": np.array([True, False, True])})
    assert np.array_equal(obs[1], last[0][1])
    assert not np.array_equal(obs[0], last[0][0])
    assert infos["_x_pos"].tolist() == [True, False, True]
    assert infos["steps"].tolist() == [0, 0, 0]
    assert env.info(1)["steps"] == 10
    env.close()


def test_render(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, render_mode="rgb_array")
    env.reset(seed=0)
    frames = env.render()
    assert frames is not None
    assert [frame.shape for frame in frames] == [(240, 256, 3)] * 2
    assert len(np.unique(frames[0].reshape(-1, 3), axis=0)) > 5
    env.close()
    silent = MarioVectorEnv(1, rom=rom)
    # What stands in the way first is said first.
    with pytest.raises(ResetNeeded):
        silent.render()
    silent.reset(seed=0)
    with pytest.raises(ValueError, match="render_mode"):
        silent.render()
    silent.close()
    with pytest.raises(ClosedEnvironmentError):
        silent.render()


def test_gymnasium_wrappers_work(rom: bytes) -> None:
    env = RecordEpisodeStatistics(MarioVectorEnv(2, rom=rom, time_limit=5))
    env.reset(seed=0)
    infos: dict[str, Any] = {}
    for _ in range(5):
        infos = env.step(np.array([RIGHT_B, 0]))[-1]
    assert infos["episode"]["l"].tolist() == [5, 5]
    env.close()


BAD_ACTIONS: list[tuple[Any, type[Exception], str]] = [
    (np.zeros(3, np.int64), ValueError, r"\(2,\)"),
    (np.zeros((2, 1), np.int64), ValueError, r"\(2,\)"),
    (np.zeros(2, np.float32), TypeError, "float32"),
    (np.zeros(2, np.bool_), TypeError, "bool"),
    (["a", "b"], TypeError, "whole"),
    (np.array([0, 7]), ValueError, "7"),
    (np.array([-1, 0]), ValueError, "-1"),
]


@pytest.mark.parametrize(("actions", "error", "text"), BAD_ACTIONS)
def test_bad_actions(rom: bytes, actions: Any, error: type[Exception], text: str) -> None:
    env = MarioVectorEnv(2, rom=rom)
    env.reset(seed=0)
    with pytest.raises(error, match=text):
        env.step(actions)
    assert env.info(0)["steps"] == 0
    env.step(np.array([0, 6], np.uint8))
    env.close()


@pytest.mark.parametrize(
    ("mask", "error"),
    [
        ([True, False], TypeError),
        (np.array([1, 0]), TypeError),
        (np.array([True]), ValueError),
        (np.array([False, False]), ValueError),
    ],
)
def test_bad_reset_masks(rom: bytes, mask: Any, error: type[Exception]) -> None:
    env = MarioVectorEnv(2, rom=rom)
    env.reset(seed=0)
    with pytest.raises(error, match="reset_mask"):
        env.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="speed"):
        env.reset(options={"speed": 2})
    env.close()


def test_order_of_calls(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom)
    with pytest.raises(ResetNeeded):
        env.step(np.zeros(2, np.int64))
    with pytest.raises(ResetNeeded):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(np.zeros(2, np.int64)), lambda: env.ram(0)):
        with pytest.raises(ClosedEnvironmentError):
            call()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_envs": 0}, ValueError, "num_envs"),
        ({"num_envs": 1.5}, TypeError, "num_envs"),
        ({"num_threads": 0}, ValueError, "num_threads"),
        ({"autoreset_mode": "sometimes"}, ValueError, "NEXT_STEP"),
        ({"batch_size": 2}, ValueError, "batch_size"),
        ({"render_mode": "ansi"}, ValueError, "ansi"),
        ({"native": "yes"}, ValueError, "native"),
        ({"native": True, "timing": "nes-py"}, ValueError, "nes-py"),
        ({"simd": "mmx"}, ValueError, "mmx"),
        ({"rom": b"NES"}, RomError, "These bytes"),
    ],
)
def test_bad_construction(
    rom: bytes, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        MarioVectorEnv(**{"rom": rom, **options})


def test_nes_py_timing_is_interpreted(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, timing="nes-py", reward="gym")
    assert not env.native
    env.reset(seed=0)
    rewards = [float(env.step(np.full(2, RIGHT_B))[1][0]) for _ in range(10)]
    assert all(-60 <= reward <= 60 for reward in rewards)
    assert sum(rewards) > 20
    env.close()


def test_ended_lane_must_be_reset_without_autoreset(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, time_limit=2, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=0)
    play(env, 2)
    with pytest.raises(RuntimeError, match="reset"):
        env.step(np.zeros(2, np.int64))
    env.reset()
    play(env, 2)
    env.close()


def test_a_forked_child_is_told_to_make_its_own(rom: bytes) -> None:
    env = MarioVectorEnv(2, rom=rom, num_threads=2)
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            env.step(np.zeros(2, np.int64))
        except RuntimeError as error:
            code = 0 if "another process" in str(error) else 2
            # Neither closing nor freeing may wait for threads that this process does not have.
            env.close()
            del env
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    env.close()


def test_the_gil_is_free_during_a_step(rom: bytes) -> None:
    env = MarioVectorEnv(64, rom=rom, num_threads=1, frame_skip=64)
    env.reset(seed=0)
    interval = sys.getswitchinterval()
    # Whoever holds the lock now keeps it until he gives it away.
    sys.setswitchinterval(60.0)
    try:
        # On a busy machine this thread may come too late for a step, but not for all of them.
        assert any(_runs_beside_a_step(env) for _ in range(20))
    finally:
        sys.setswitchinterval(interval)
    env.close()


def _runs_beside_a_step(env: MarioVectorEnv) -> bool:
    done = threading.Event()

    def step() -> None:
        env.step(np.zeros(env.num_envs, np.int64))
        done.set()

    worker = threading.Thread(target=step)
    worker.start()
    beside = not done.is_set()
    worker.join()
    return beside
