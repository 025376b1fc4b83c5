"""Our environments behave as Gymnasium's own: registration, checkers, SyncVectorEnv parity."""

import subprocess
import sys
from typing import Any
from unittest.mock import MagicMock

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import warpzone
from warpzone.env.registration import environments
from warpzone.env.single import MarioEnv
from warpzone.env.vector import MarioVectorEnv

MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


def test_all_ids_are_registered() -> None:
    ids = environments()
    assert len(ids) == 34
    for name in ids:
        assert gymnasium.spec(name).vector_entry_point is not None


def test_importing_the_package_is_enough() -> None:
    code = (
        "import warpzone, gymnasium, sys;"
        "assert 'warpzone/SuperMarioBros-1-1-v0' in gymnasium.registry;"
        "assert 'torch' not in sys.modules and 'warpzone._engine' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_make_can_import_the_package_itself() -> None:
    """Gymnasium 1.x has no plugins: `module:id` is its way to name the package to import."""
    code = (
        "import gymnasium;"
        "env = gymnasium.make('warpzone:warpzone/SuperMarioBros-1-1-v0', rom='eu');"
        "assert env.reset(seed=0)[0].shape == (4, 84, 84)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("warpzone/SuperMarioBros-1-1-v0", 0),
        ("warpzone/SuperMarioBros-8-4-v0", 31),
        ("warpzone/SuperMarioBros-v0", -1),
    ],
)
def test_make(rom: bytes, name: str, start: int) -> None:
    env = gymnasium.make(name, rom=rom)
    assert env.reset(seed=0)[1]["start_stage"] == start
    env.close()
    vec = gymnasium.make_vec(name, num_envs=2, rom=rom)
    assert isinstance(vec, MarioVectorEnv)
    assert vec.reset(seed=0)[1]["start_stage"].tolist() == [start] * 2
    vec.close()


def test_random_stages(rom: bytes) -> None:
    vec = gymnasium.make_vec("warpzone/SuperMarioBrosRandomStages-v0", num_envs=32, rom=rom)
    assert len(set(vec.reset(seed=0)[1]["start_stage"].tolist())) > 8
    vec.close()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [*list(environments())[-2:], "warpzone/SuperMarioBros-1-1-v0"])
def test_env_checker(rom: bytes, name: str) -> None:
    env = gymnasium.make(name, rom=rom, render_mode="rgb_array", disable_env_checker=True)
    # Its render check opens a window, which needs a display; test_single_environment renders.
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_single_environment(rom: bytes) -> None:
    env = MarioEnv(rom=rom, time_limit=4, render_mode="rgb_array")
    obs, info = env.reset(seed=0)
    assert obs.shape == (4, 84, 84)
    assert type(info["x_pos"]) is int
    assert type(info["flag_get"]) is bool
    state = env.save()
    results = [env.step(3) for _ in range(4)]
    assert type(results[0][1]) is float
    assert [result[3] for result in results] == [False, False, False, True]
    with pytest.raises(ResetNeeded):
        env.step(0)
    assert np.array_equal(env.load(state), obs)
    assert np.array_equal(env.step(3)[0], results[0][0])
    assert env.screen().shape == env.render().shape == (240, 256, 3)  # type: ignore[union-attr]
    assert env.ram().shape == (2048,)
    for bad in (7, -1, 1.5, "A"):
        with pytest.raises((ValueError, TypeError)):
            env.step(bad)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="speed"):
        env.reset(options={"speed": 1})
    env.close()
    env.close()


def test_human_mode_without_display_says_so(rom: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only here is the display an environment variable")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("SDL_VIDEODRIVER", raising=False)
    env = MarioEnv(rom=rom, render_mode="human")
    with pytest.raises(OSError, match="display"):
        env.reset(seed=0)
    env.close()


def test_the_checker_passes_without_a_display(rom: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries every advertised mode; SDL's dummy driver draws without a display."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame = MagicMock()
    monkeypatch.setitem(sys.modules, "pygame", pygame)
    env = gymnasium.make("warpzone/SuperMarioBros-1-1-v0", rom=rom)
    check_env(env.unwrapped)
    assert pygame.display.flip.called
    env.close()


def assert_same(ours: Any, theirs: Any, path: str = "") -> None:
    """Equal values, whatever the integer width."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), path
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{path}/{key}")
    elif isinstance(theirs, tuple) or np.asarray(theirs).dtype.kind == "O":
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            assert (one is None) == (other is None), path
            if other is not None:
                assert_same(one, other, f"{path}[{index}]")
    else:
        assert np.array_equal(ours, theirs), path


@pytest.mark.parametrize("mode", MODES)
def test_equal_to_sync_vector_env(rom: bytes, mode: AutoresetMode) -> None:
    """Every array of every step, through ends, truncations and resets."""
    options: dict[str, Any] = {
        "rom": rom,
        "stages": "1-1,1-4,8-1",
        "time_limit": 30,
        "start_delay": (0, 20),
        "start_power": "any",
        "start_halfway": 0.3,
        "sticky": 0.1,
    }
    lanes, seeds = 3, [5, 6, 7]
    theirs = SyncVectorEnv([lambda: MarioEnv(**options)] * lanes, autoreset_mode=mode)
    ours = MarioVectorEnv(lanes, autoreset_mode=mode, **options)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert_same(ours.reset(seed=seeds), theirs.reset(seed=seeds), "reset")  # type: ignore[arg-type]
    rng = np.random.default_rng(0)
    ended = 0
    for step in range(80):
        actions = rng.integers(0, 7, lanes)
        mine: Any = ours.step(actions)
        other: Any = theirs.step(actions)
        for name, one, two in zip(
            ("obs", "reward", "terminated", "truncated", "infos"), mine, other, strict=True
        ):
            if name == "reward":
                one, two = one.astype(np.float32), two.astype(np.float32)
            assert_same(one, two, f"step {step} {name}")
        ended += int((mine[2] | mine[3]).sum())
    assert ended > 3
    ours.close()
    theirs.close()


def test_disabled_mode_equals_sync_vector_env(rom: bytes) -> None:
    options: dict[str, Any] = {"rom": rom, "time_limit": 7, "start_delay": (0, 9)}
    lanes = 2
    theirs = SyncVectorEnv(
        [lambda: MarioEnv(**options)] * lanes, autoreset_mode=AutoresetMode.DISABLED
    )
    ours = MarioVectorEnv(lanes, autoreset_mode=AutoresetMode.DISABLED, **options)
    ours.reset(seed=[1, 2])
    theirs.reset(seed=[1, 2])
    rng = np.random.default_rng(0)
    for _ in range(30):
        actions = rng.integers(0, 7, lanes)
        mine, other = ours.step(actions), theirs.step(actions)
        assert_same(mine[0], other[0])
        assert_same(mine[4], other[4])
        ended = mine[2] | mine[3]
        if ended.any():
            reset = [env.reset(options={"reset_mask": ended.copy()}) for env in (ours, theirs)]
            assert_same(reset[0], reset[1])
    ours.close()
    theirs.close()


def test_package_exports() -> None:
    assert warpzone.MarioEnv is MarioEnv
    assert warpzone.MarioVectorEnv is MarioVectorEnv
