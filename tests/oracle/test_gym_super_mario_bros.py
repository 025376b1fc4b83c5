"""`warpzone.compat` beside the real gym-super-mario-bros: every ROM of its wheel, step by step."""

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from PIL import Image

from warpzone import _engine, compat
from warpzone import rom as roms
from warpzone.cli.main import main
from warpzone.compat.environments import ROMS
from warpzone.env.backends.env import BackendEnv
from warpzone.env.backends.interface import BackendError
from warpzone.env.vector import MarioVectorEnv

reference = pytest.importorskip(
    "nes_py_reference",
    reason="needs nes-py 8.2.1 and gym-super-mario-bros 7.4.0 (see requirements-compare.lock)",
    exc_type=ImportError,
)
actions = pytest.importorskip("gym_super_mario_bros.actions")
nes_py_wrappers = pytest.importorskip("nes_py.wrappers")
rom_paths = pytest.importorskip("gym_super_mario_bros._roms.rom_path")

MODES = ["vanilla", "downsample", "pixel", "rectangle"]
GAMES = [*((mode, False) for mode in MODES), ("vanilla", True), ("downsample", True)]
RIGHT_B = 130
GAME_STEPS, DYING_STEPS, STAGE_STEPS = 100, 250, 30


@pytest.fixture(scope="module", autouse=True)
def wheel_roms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A data folder with every ROM of the package that is compared with."""
    with pytest.MonkeyPatch.context() as patch:
        for name in roms.OVERRIDES:
            patch.delenv(name, raising=False)
        patch.setenv("WARPZONE_DATA", str(tmp_path_factory.mktemp("data")))
        for lost, modes in ROMS.items():
            for mode, variant in modes.items():
                assert roms.install(source=rom_paths.rom_path(lost, mode)).variant == variant
        yield


def held(seed: int, choices: int, steps: int) -> Iterator[int]:
    """Random choices, each held for a while, as a player holds buttons."""
    rng = np.random.default_rng(seed)
    choice = left = 0
    for _ in range(steps):
        if left == 0:
            choice, left = int(rng.integers(choices)), int(rng.integers(1, 25))
        left -= 1
        yield choice


def compare(ours: Any, theirs: Any, chosen: Iterator[int]) -> int:
    """Both from a reset, with resets where episodes end; how many did."""
    assert np.array_equal(ours.reset(), theirs.reset())
    ended = 0
    for number, action in enumerate(chosen):
        mine, other = ours.step(action), theirs.step(action)
        assert np.array_equal(mine[0], other[0]), number
        assert mine[1:] == other[1:], number
        assert type(mine[1]) is float
        assert np.array_equal(ours.unwrapped.ram, theirs.unwrapped.ram), number
        if mine[2]:
            ended += 1
            assert np.array_equal(ours.reset(), theirs.reset())
    return ended


def make(mode: str, lost: bool, target: tuple[int, int] | None) -> tuple[Any, Any]:
    ours = compat.SuperMarioBrosEnv(mode, lost, target)
    theirs = reference.smb_env.SuperMarioBrosEnv(mode, lost, target)
    return compat.FourTuple(ours), theirs


def test_all_ids() -> None:
    registry = pytest.importorskip("gym.envs.registration").registry
    theirs = [name for name in registry if name.startswith("SuperMarioBros")]
    assert sorted(compat.environments()) == sorted(theirs)
    assert set(theirs) <= set(gymnasium.registry)


@pytest.mark.parametrize(("mode", "lost"), GAMES)
def test_game(mode: str, lost: bool) -> None:
    """The whole game through `make` and `JoypadSpace`, deaths included."""
    version = MODES.index(mode)
    name = f"SuperMarioBros2-v{version}" if lost else f"SuperMarioBros-v{version}"
    ours = compat.JoypadSpace(compat.make(name), compat.COMPLEX_MOVEMENT)
    env = reference.smb_env.SuperMarioBrosEnv(mode, lost)
    theirs = nes_py_wrappers.JoypadSpace(env, actions.COMPLEX_MOVEMENT)
    compare(ours, theirs, held(version, len(compat.COMPLEX_MOVEMENT), GAME_STEPS))
    # Then into the first enemy, and past the scene after it.
    run_right = compat.COMPLEX_MOVEMENT.index(["right", "B"])
    compare(ours, theirs, iter([run_right] * DYING_STEPS))
    assert ours.step(0)[3]["life"] < 2
    ours.close()
    theirs.close()


STAGES = [(mode, False, stage) for mode in MODES[1:] for stage in [(1, 2), (7, 4)]]
LOST_STAGES = [
    ("vanilla", True, stage) for stage in [(1, 2), (2, 2), (2, 4), (3, 1), (3, 2), (4, 4)]
]


@pytest.mark.parametrize(("mode", "lost", "target"), [*STAGES, *LOST_STAGES])
def test_stage(mode: str, lost: bool, target: tuple[int, int]) -> None:
    ours, theirs = make(mode, lost, target)
    compare(ours, theirs, held(sum(target), 256, STAGE_STEPS))
    ours.close()
    theirs.close()


def test_end_of_an_episode() -> None:
    ours, theirs = make("rectangle", False, (1, 1))
    assert compare(ours, theirs, iter([RIGHT_B] * 200)) == 1
    while not ours.step(RIGHT_B)[2]:
        pass
    with pytest.raises(ValueError, match="cannot step in a done environment! call `reset`"):
        ours.step(RIGHT_B)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("stages", [None, ["1-1", "4-2", "8-3"]])
def test_random_stages(stages: list[str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same seeds draw the same stages. The original's 32 games are left out: each of them is
    compared above."""
    module = pytest.importorskip("gym_super_mario_bros.smb_random_stages_env")

    class Game:
        def __init__(self, rom_mode: str, target: tuple[int, int]) -> None:
            self.target = target

        def reset(self, **_: Any) -> tuple[int, int]:
            return self.target

    monkeypatch.setattr(module, "SuperMarioBrosEnv", Game)
    theirs = module.SuperMarioBrosRandomStagesEnv(stages=stages)
    ours: Any = compat.make("SuperMarioBrosRandomStages-v0", timing="vblank", stages=stages)
    for seed in (3, None, None, None, 11, None):
        world, stage = theirs.reset(seed=seed)
        ours.reset(seed=seed)
        info = ours.step(0)[3]
        assert (info["world"], info["stage"]) == (world, stage)
    options = {"stages": ["5-3"]}
    assert theirs.reset(options=options) == (5, 3)
    ours.reset(options=options)
    assert ours.unwrapped._lanes.info(0)["start_stage"] == 18
    ours.close()


def test_wrapper_and_lists() -> None:
    for name in ("RIGHT_ONLY", "SIMPLE_MOVEMENT", "COMPLEX_MOVEMENT"):
        assert getattr(compat, name) == getattr(actions, name)
    assert compat.JoypadSpace.buttons() == nes_py_wrappers.JoypadSpace.buttons()
    ours, theirs = make("vanilla", False, (1, 1))
    assert ours.unwrapped.get_keys_to_action() == theirs.get_keys_to_action()
    assert ours.get_action_meanings() == theirs.get_action_meanings()
    mine: Any = compat.JoypadSpace(ours, compat.SIMPLE_MOVEMENT)
    other = nes_py_wrappers.JoypadSpace(theirs, actions.SIMPLE_MOVEMENT)
    assert mine.get_keys_to_action() == other.get_keys_to_action()
    assert mine.get_action_meanings() == other.get_action_meanings()
    assert mine.action_space.n == other.action_space.n
    mine.reset()
    assert np.array_equal(mine.ram, ours.unwrapped.ram)
    assert mine.render("rgb_array").shape == mine.screen.shape == (240, 256, 3)
    with pytest.raises(ValueError, match="unknown button 'jump'"):
        compat.JoypadSpace(ours, [["jump"]])
    with pytest.raises(ValueError, match=r"action 7 is not in Discrete\(7\)"):
        mine.step(7)
    ours.close()
    theirs.close()


def test_under_gymnasium() -> None:
    env = gymnasium.make("SuperMarioBros-1-2-v0", timing="vblank")
    obs, _ = env.reset(seed=0)
    assert obs.shape == (240, 256, 3)
    assert len(env.step(RIGHT_B)) == 5
    assert env.action_space == gymnasium.spaces.Discrete(256)
    check_env(env.unwrapped)
    env.close()


def test_time_limits_are_marked() -> None:
    env = compat.make("SuperMarioBros-1-1-v0", timing="vblank", max_episode_steps=2)
    env.seed(4)
    env.reset()
    env.step(0)
    _, _, done, info = env.step(0)
    assert done
    assert info["TimeLimit.truncated"] is True
    env.close()


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="must be one of vanilla, downsample, not 'pixel'"):
        compat.SuperMarioBrosEnv("pixel", lost_levels=True)
    with pytest.raises(TypeError, match="target is a world and a stage"):
        compat.SuperMarioBrosEnv(target="1-1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'9-1' is not a stage"):
        compat.SuperMarioBrosEnv(target=(9, 1))
    with pytest.raises(ValueError, match="this ROM has no stage 5-1; its stages are 1-1 to 4-4"):
        compat.SuperMarioBrosEnv(lost_levels=True, target=(5, 1))


def test_a_missing_rom_names_its_command(folders: Path) -> None:
    with pytest.raises(FileNotFoundError, match="`warpzone rom install --variant pixel`"):
        compat.make("SuperMarioBros-v2")


@pytest.mark.parametrize("rom", ["downsample", "pixel"])
def test_other_pictures_are_the_same_game(rom: str) -> None:
    """Running to the right, Mario dies at the first enemy after 27 steps, and again after 27 more:
    after 60 steps he has just begun for the third time, on each of these ROMs."""
    shown = []
    for name in (rom, "eu"):
        env = MarioVectorEnv(1, rom=name, size=8, native=False)
        env.reset(seed=0)
        xs = [int(env.step(np.array([3]))[4]["x_pos"][0]) for _ in range(60)]
        shown.append(xs)
        env.close()
    assert shown[0] == shown[1]
    assert max(shown[0]) > 250
    assert shown[0][-1] < 60


class TestLostLevels:
    """Worlds 1 to 4, on the engine's own timing as in training."""

    def test_every_stage_starts_and_moves(self) -> None:
        stages = [[f"{world}-{stage}"] for world in range(1, 5) for stage in range(1, 5)]
        env = MarioVectorEnv(16, rom="lost-levels", stages=stages, size=8, native=False)
        _, infos = env.reset(seed=0)
        worlds = list(zip(infos["world"].tolist(), infos["stage"].tolist(), strict=True))
        assert [f"{world}-{stage}" for world, stage in worlds] == [name for [name] in stages]
        castles = (infos["area_type"] == 3).tolist()
        assert castles == [False, False, False, True] * 4
        maps = zip(infos["area_type"].tolist(), infos["area_index"].tolist(), strict=True)
        assert len(set(maps)) == 16
        reward = np.zeros(16)
        for _ in range(12):
            reward += env.step(np.full(16, 3))[1]
        assert (reward > 1).all()
        env.close()

    def test_what_is_not_there_is_refused(self) -> None:
        for stages in ("5-1", "all", "1-1..8-4"):
            with pytest.raises(ValueError, match=r"no stage 5-1; its stages are 1-1 to 4-4"):
                MarioVectorEnv(1, rom="lost-levels", stages=stages, native=False)
        env = MarioVectorEnv(1, rom="lost-levels", stages="4-4", native=False)
        with pytest.raises(ValueError, match="no stage 6-2"):
            env.set_stages(0, "6-2")
        env.close()

    def test_other_back_ends_refuse_what_they_would_start_elsewhere(self) -> None:
        with pytest.raises(BackendError, match="as a whole game or in world 1"):
            BackendEnv("nes-py", rom="lost-levels", stages="2-2")
        env = BackendEnv("nes-py", rom="lost-levels", stages="1-2", size=8, frame_stack=1)
        info = env.reset(seed=0)[1]
        assert (info["world"], info["stage"], info["area"]) == (1, 2, 3)
        env.close()

    def test_consoles_know_the_stages_too(self) -> None:
        console = _engine.Console(roms.find("lost-levels"))
        console.start_stage(15)
        ram = console.ram()
        assert (ram[_engine.RAM["world"]], ram[_engine.RAM["stage"]]) == (3, 3)
        with pytest.raises(ValueError, match="no stage 5-1"):
            _engine.Console(roms.find("lost-levels")).start_stage(16)

    def test_commands(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("WARPZONE_NATIVE", "0")
        monkeypatch.chdir(tmp_path)
        with pytest.warns(RuntimeWarning, match="interpreter"):
            assert main(["map", "2-4", "--rom", "lost-levels", "--out", "castle.png"]) == 0
        width, height = Image.open(tmp_path / "castle.png").size
        assert (width > 2000, height) == (True, 208)
        with pytest.warns(RuntimeWarning, match="interpreter"):
            assert main(["train", "--rom", "lost-levels", "--stages", "all"]) == 2
        assert "no stage 5-1; its stages are 1-1 to 4-4" in capsys.readouterr().err


@pytest.mark.parametrize("installed", [True, False])
def test_a_script_with_one_more_line(installed: bool) -> None:
    """The example of the original's documentation, as it is, after `take_over()`."""
    lines = [
        "import importlib.util, sys",
        "real = importlib.util.find_spec",
        f"hidden = {not installed}",
        "find = lambda name, *rest: None if hidden and name == 'nes_py' else real(name, *rest)",
        "importlib.util.find_spec = find",
        "import warpzone.compat; warpzone.compat.take_over()",
        "from nes_py.wrappers import JoypadSpace",
        "import gym_super_mario_bros",
        "from gym_super_mario_bros.actions import SIMPLE_MOVEMENT",
        "env = gym_super_mario_bros.make('SuperMarioBros-v0')",
        "env = JoypadSpace(env, SIMPLE_MOVEMENT)",
        "state = env.reset()",
        "state, reward, done, info = env.step(1)",
        "assert type(env).__module__ == 'warpzone.compat.wrappers'",
        "assert not hidden or not hasattr(sys.modules['nes_py'], 'NESEnv')",
        "print(info['x_pos'])",
    ]
    code = "\n".join(lines)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True
    )
    assert done.stdout.split()[-1] == "40"


def test_wrapped_environments_can_be_copied() -> None:
    env: Any = compat.make("SuperMarioBrosRandomStages-v0", timing="vblank")
    env = compat.JoypadSpace(env, compat.SIMPLE_MOVEMENT)
    env.reset()
    twin = copy.deepcopy(env)
    for _ in range(3):
        mine, theirs = env.step(3), twin.step(3)
        assert np.array_equal(mine[0], theirs[0])
        assert mine[1:] == theirs[1:]
    env.close()
    twin.close()
