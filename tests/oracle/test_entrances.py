"""Starts as big and fiery Mario and starts halfway, against games in which he got there by himself:
he takes the mushroom and the flower of 1-1 and goes on to 1-2, or loses a life behind the middle of
1-1. The machine is played frame by frame, every scene included; nothing is written to its memory
after the start of 1-1."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from warpzone import _engine, rom
from warpzone.env.actions import BUTTONS, action_table
from warpzone.env.options import Options
from warpzone.env.script import parse_start
from warpzone.rom import native

WAYS = json.loads((Path(__file__).parents[1] / "golden" / "powers.json").read_text())["ways"]
POWERS = {"big": 1, "fire": 2}
SKIP = 4
#: Where the game keeps what; stated here once more on purpose.
STATE, FLOAT, X_PAGE, X, Y, Y_SPEED = 0x0E, 0x1D, 0x6D, 0x86, 0xCE, 0x9F
SIZE, POWER, LIVES, STAGE, AREA, TASK, PAUSED = 0x754, 0x756, 0x75A, 0x75C, 0x760, 0x772, 0x776
SCREEN_PAGE, THROWN = 0x71A, 0x6CE
IN_CONTROL, PLAYING = 8, 3
#: All that the game leaves alone when it loads an area, from the area's pointer to the lives.
CARRIED = range(0x74B, 0x770)
#: What is of the game so far and not of Mario in it: lives, whether 1-1 or 2-1 still has its hidden
#: mushroom, coins.
PAST = {LIVES, 0x75D, 0x75E}
#: Mario from frame to frame: his state and movement, his place on the map and on the screen, size
#: and power, whether he ducks, his bounding box, how he is drawn, and his fireballs.
MARIO = [
    *(
        STATE,
        FLOAT,
        0x33,
        0x45,
        0x57,
        X_PAGE,
        X,
        Y_SPEED,
        0xB5,
        Y,
        0x433,
        0x704,
        0x705,
        SIZE,
        POWER,
    ),
    *(SCREEN_PAGE, 0x71C, 0x714, 0x499, 0x3C4, THROWN, 0x24, 0x25, 0x8D, 0x8E, 0xD5, 0xD6, 0x70B),
]
RIGHT, LEFT, DOWN, A, B = (BUTTONS[name] for name in ("RIGHT", "LEFT", "DOWN", "A", "B"))
#: Walks, ducks, turns, throws to the left and jumps near the door, before an enemy comes there.
PLAY = [
    *([RIGHT] * 16 + [0] * 6 + [DOWN] * 8 + [0] * 4 + [LEFT] * 6 + [B] * 3 + [0] * 3 + [B] * 3),
    *([A] * 14 + [0] * 24 + [RIGHT | B] * 12),
]

Ram = NDArray[np.uint8]
Frame = Callable[[int], None]


class Arrived:
    """A game that came to a place by itself."""

    def __init__(self, variant: str) -> None:
        image = rom.find(variant)
        self.console = _engine.Console(image, native=native.load(image))
        self.console.start_stage(0)

    def frame(self, buttons: int) -> None:
        self.console.frame(buttons)

    def ram(self) -> Ram:
        return self.console.ram()

    def until(self, there: Callable[[Ram], bool], buttons: int = 0) -> None:
        for _ in range(20_000):
            if there(self.ram()):
                return
            self.frame(buttons)
        raise AssertionError("the game never got there")


class Started:
    """A lane that begins there."""

    def __init__(self, variant: str, stage: str, power: str, halfway: float = 0.0) -> None:
        image = rom.find(variant)
        self.masks = bytes(sorted({0, *PLAY}))
        options = Options(
            stages=stage,
            actions=self.masks,
            frame_skip=1,
            frame_stack=1,
            size=8,
            start_power=power,
            start_halfway=halfway,
        )
        disabled = _engine.Autoreset.DISABLED
        self.vector = options.make_vector(image, 1, native=native.load(image), autoreset=disabled)
        self.obs = np.zeros((1, *self.vector.obs_shape), np.uint8)
        self.info = np.zeros((1, len(_engine.INFO_FIELDS)), np.int32)
        self.reward, self.ends = np.zeros(1, np.float32), np.zeros((2, 1), np.bool_)
        self.vector.reset(None, self.obs, self.info)

    def frame(self, buttons: int) -> None:
        action = np.array([self.masks.index(buttons)])
        parts = (self.obs, self.reward, self.ends[0], self.ends[1], self.info)
        self.vector.step(action, *parts, None, None)
        assert not self.ends.any()

    def ram(self) -> Ram:
        return np.asarray(self.vector.ram([0])[0])


def in_control(ram: Ram) -> bool:
    return bool(ram[TASK] == PLAYING and ram[STATE] == IN_CONTROL)


def carried(ram: Ram) -> dict[int, int]:
    return {address: int(ram[address]) for address in CARRIED if address not in PAST}


def assert_same_play(true: Arrived, ours: Started) -> None:
    """Both wait until Mario stands, whatever the frame of their clocks; then they play alike."""
    for game in (true, ours):
        for _ in range(60):
            game.frame(0)
        ram = game.ram()
        assert ram[FLOAT] == ram[Y_SPEED] == 0
        assert not ram[PAUSED] & 1
    for step, buttons in enumerate(PLAY):
        true.frame(buttons)
        ours.frame(buttons)
        want, got = (game.ram()[MARIO].tolist() for game in (true, ours))
        assert got == want, step


@pytest.mark.parametrize("name", WAYS)
def test_big_and_fiery_mario_as_he_comes_from_1_1(name: str) -> None:
    variant, power = name.split()
    true = Arrived(variant)
    masks = action_table("complex").masks
    true.console.frames(bytes(masks[int(letter, 12)] for letter in WAYS[name] for _ in range(SKIP)))
    true.until(lambda ram: bool(ram[STAGE] == 1 and ram[AREA] == 2 and in_control(ram)))
    ours = Started(variant, "1-2", power)
    assert ours.ram()[POWER] == POWERS[power]
    assert ours.ram()[SIZE] == 0
    assert carried(ours.ram()) == carried(true.ram())
    small = Started(variant, "1-2", "small")
    assert carried(small.ram()) | {POWER: POWERS[power], SIZE: 0} == carried(true.ram())
    assert_same_play(true, ours)
    assert (ours.ram()[THROWN] > 0) == (power == "fire")


@pytest.mark.parametrize("variant", ["eu", "world"])
def test_halfway_as_after_a_lost_life(variant: str) -> None:
    true = Arrived(variant)
    page = 5
    for buttons in parse_start(f"demo-{variant}"):
        true.frame(buttons)
        if true.ram()[SCREEN_PAGE] >= page:
            break
    lives = true.ram()[LIVES]
    true.until(lambda ram: bool(ram[LIVES] == lives - 1), RIGHT)
    true.until(in_control)
    assert true.ram()[X_PAGE] == page
    ours = Started(variant, "1-1", "fire", halfway=1.0)  # a lost life makes him small
    assert ours.ram()[X_PAGE] == page
    assert carried(ours.ram()) == carried(true.ram())
    assert_same_play(true, ours)
