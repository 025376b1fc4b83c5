"""`timing="nes-py"` is gym-super-mario-bros, step by step: RAM, screen, reward, done and info."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

import warpzone
from warpzone import _engine
from warpzone import rom as roms
from warpzone.env.infos import STATUS_NAMES

reference = pytest.importorskip(
    "nes_py_reference",
    reason="needs nes-py 8.2.1 and gym-super-mario-bros 7.4.0 (see requirements-compare.lock)",
    exc_type=ImportError,
)

#: Button masks a player would press; every second one runs to the right.
MASKS = bytes([0, 128, 129, 130, 131, 131, 1, 64, 65, 32])
RUN_RIGHT, JUMP_RIGHT = MASKS.index(130), MASKS.index(131)
STAGE_STEPS = 100
CONSOLE_STEPS = 700
INFO_FIELDS = ("coins", "flag_get", "life", "score", "stage", "time", "world", "x_pos", "y_pos")

#: Steps of jumping and running to the right in turn that end at the flag of 1-1.
CLEAR_1_1 = {
    "eu": (
        "36 60 42 42 36 36 6 24 30 66 108 36 72 24 48 24 42 24 30 60 30 30 18 36 36 36 48 "
        "66 12 18 36 66 60 12 108 30 24 30 30 36 24 72 12"
    ),
    "world": (
        "114 30 6 48 72 36 66 12 90 60 36 84 6 24 42 18 18 6 24 36 24 48 12 18 54 6 18 "
        "120 78 36 30 60 60 48 18 30 36 18 60 6 72 30 6 36 54 12 12 18 48 90 24"
    ),
}


@pytest.fixture(scope="module")
def rom_file(variant: str) -> Path:
    path = roms.load_stored(variant).path
    assert path is not None
    return path


def held(rng: np.random.Generator, choices: int, steps: int) -> Iterator[int]:
    """Random choices, each held for a while, as a player holds buttons."""
    choice, left = 0, 0
    for _ in range(steps):
        if left == 0:
            choice, left = int(rng.integers(choices)), int(rng.integers(1, 20))
        left -= 1
        yield choice


def clear_1_1(variant: str) -> Iterator[int]:
    for turn, steps in enumerate(CLEAR_1_1[variant].split()):
        yield from [RUN_RIGHT if turn % 2 else JUMP_RIGHT] * int(steps)


def assert_same(ours: NDArray[np.uint8], theirs: Any, what: str) -> None:
    if not np.array_equal(ours, theirs):
        where = np.argwhere(ours != theirs)
        pytest.fail(f"{what}: {len(where)} bytes differ, the first at {where[0].tolist()}")


class Pair:
    """The same stage (None: the whole game) in our environment and in theirs.

    Their observation is the screen; ours is too with `full_size`, and otherwise a small one, which
    makes long runs shorter, and the screen is asked for.
    """

    def __init__(
        self, rom_file: Path, stage: tuple[int, int] | None, *, full_size: bool = False
    ) -> None:
        self.full_size = full_size
        self.theirs = reference.make_env(stage, rom_file)
        self.ours = warpzone.MarioVectorEnv(
            1,
            rom=rom_file,
            stages="game" if stage is None else f"{stage[0]}-{stage[1]}",
            actions=MASKS,
            timing="nes-py",
            reward="gym",
            end="game_over" if stage is None else "life",
            frame_skip=1,
            frame_stack=1,
            gray=False,
            size=(240, 256) if full_size else 8,
            autoreset_mode=AutoresetMode.DISABLED,
        )

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()

    def reset(self) -> None:
        screen = self.theirs.reset()
        obs, _ = self.ours.reset(seed=0)
        self.compare(obs, screen, "reset")

    def step(self, action: int, what: str) -> bool:
        screen, reward, done, info = self.theirs.step(MASKS[action])
        obs, our_reward, terminated, truncated, infos = self.ours.step(np.array([action]))
        assert our_reward[0] == reward, what
        assert terminated[0] == done, what
        assert not truncated[0], what
        ours = {name: infos[name][0].item() for name in INFO_FIELDS}
        ours["status"] = STATUS_NAMES[infos["status"][0]]
        assert ours == info, what
        self.compare(obs, screen, what)
        return bool(done)

    def compare(self, obs: NDArray[np.uint8], screen: Any, what: str) -> None:
        assert_same(self.ours.ram(0), np.asarray(self.theirs.ram), f"RAM, {what}")
        ours = obs.reshape(240, 256, 3) if self.full_size else self.ours.screen(0)
        assert_same(ours, screen, f"screen, {what}")


@pytest.mark.parametrize("stage", reference.STAGES, ids=lambda stage: f"{stage[0]}-{stage[1]}")
def test_stage(rom_file: Path, variant: str, stage: tuple[int, int]) -> None:
    """Random play, the death and the reset after it included."""
    pair = Pair(rom_file, stage, full_size=True)
    pair.reset()
    rng = np.random.default_rng([*stage, len(variant)])
    for number, action in enumerate(held(rng, len(MASKS), STAGE_STEPS)):
        if pair.step(action, f"{stage} step {number}"):
            pair.reset()
    pair.close()


def test_flag(rom_file: Path, variant: str) -> None:
    pair = Pair(rom_file, (1, 1))
    pair.reset()
    ended = any(pair.step(action, f"step {n}") for n, action in enumerate(clear_1_1(variant)))
    assert ended
    assert pair.ours.info(0)["flag_get"]
    pair.close()


def test_next_stage(rom_file: Path, variant: str) -> None:
    """Past the flag of 1-1, the scenes behind it skipped, and a while into 1-2."""
    pair = Pair(rom_file, None)
    pair.reset()
    for number, action in enumerate([*clear_1_1(variant), *[RUN_RIGHT] * 100]):
        assert not pair.step(action, f"step {number}")
    assert pair.ours.info(0)["stage"] == 2
    pair.close()


def test_game_over(rom_file: Path) -> None:
    """Running into the first enemy until no life is left, and the reset after it."""
    pair = Pair(rom_file, None)
    pair.reset()
    assert any(pair.step(RUN_RIGHT, f"step {number}") for number in range(600))
    assert pair.ours.info(0)["life"] == 255
    pair.reset()
    pair.close()


def test_console(rom: bytes, rom_file: Path) -> None:
    """The bare machine from power-on: two players' random buttons, pokes and the reset button."""
    ours = _engine.Console(rom, timing="nes-py")
    theirs = reference.Emulator(rom_file)
    rng = np.random.default_rng(1)
    for step, buttons in enumerate(held(rng, 256, CONSOLE_STEPS)):
        second = int(rng.integers(256))
        if step % 50 == 49:
            address, value = int(rng.integers(0x800)), int(rng.integers(256))
            ours.poke(address, value)
            theirs.poke(address, value)
        if step == CONSOLE_STEPS // 2:
            ours.reset()
            theirs.reset()
        ours.frame(buttons, second)
        theirs.step(buttons, second)
        assert_same(ours.ram(), theirs.ram(), f"RAM, step {step}")
        assert_same(ours.screen(), theirs.screen(), f"screen, step {step}")
    theirs.close()


def test_console_restore(rom: bytes, rom_file: Path) -> None:
    """Going back to a saved moment plays on as nes-py's own backup does."""
    ours = _engine.Console(rom, timing="nes-py")
    theirs = reference.Emulator(rom_file)
    ours.frames(bytes(120))
    for _ in range(120):
        theirs.step(0)
    saved = ours.save()
    theirs.backup()
    for seed in range(3):
        for step, buttons in enumerate(held(np.random.default_rng(seed), 256, 60)):
            ours.frame(buttons)
            theirs.step(buttons)
            assert_same(ours.ram(), theirs.ram(), f"RAM, run {seed} step {step}")
        ours.load(saved)
        theirs.restore()
        assert_same(ours.ram(), theirs.ram(), f"RAM, restored {seed}")
        assert_same(ours.screen(), theirs.screen(), f"screen, restored {seed}")
    theirs.close()
