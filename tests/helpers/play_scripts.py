"""Input generators for goldens and for the comparison with other emulators.

A player is called with the console's RAM before every frame and answers the button mask of that
frame. Everything is derived from the seed and the RAM, so equal consoles get equal inputs.
"""

import random
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

A, B, SELECT, START, UP, DOWN, LEFT, RIGHT = (1 << bit for bit in range(8))

Ram = NDArray[np.uint8]
Player = Callable[[Ram], int]

_GAME_MODE, _WORLD, _STAGE, _AREA = 0x0770, 0x075F, 0x075C, 0x0760
_PLAYER_STATE, _X_SPEED, _VERTICAL_FLOAT, _SWIMMING = 0x000E, 0x0057, 0x001D, 0x0704
_PRELEVEL_TIMER, _TIME_DIGITS = 0x07A0, slice(0x07F8, 0x07FB)
_PLAYING = 1
#: Worlds whose second stage is reached through a short area of its own.
_WORLDS_WITH_ENTRANCE = (0, 1, 3, 6)


class Console(Protocol):
    """What both our console and the reference can do."""

    def frame(self, buttons: int, buttons2: int = 0) -> None: ...
    def ram(self) -> Ram: ...
    def poke(self, address: int, value: int) -> None: ...


def start_stage(console: Console, stage: int) -> None:
    """From power-on to the first moments of a stage (0..31), the way gym-super-mario-bros gets
    there: START is pressed until the game begins while the stage is written over and over."""
    world, number = divmod(stage, 4)
    area = number + (world in _WORLDS_WITH_ENTRANCE and number > 0)
    console.frame(START)
    console.frame(0)
    while not _clock_runs(console.ram()):
        console.frame(START)
        for address, value in ((_WORLD, world), (_STAGE, number), (_AREA, area)):
            console.poke(address, value)
        console.frame(0)
        console.poke(_PRELEVEL_TIMER, 0)


def _clock_runs(ram: Ram) -> bool:
    """The clock shows a time; before the game has cleared RAM its digits are no digits."""
    digits = ram[_TIME_DIGITS]
    return bool(digits.any() and (digits <= 9).all())


def _outside_play(ram: Ram, frame: int) -> int | None:
    """START now and then on the title screen and after a game over."""
    if ram[_GAME_MODE] in (_PLAYING, 2):
        return None
    return START if frame % 16 == 8 else 0


def random_player(seed: int) -> Player:
    """Any buttons, held for 1 to 16 frames; a rare START pauses and a later one resumes."""
    rng = random.Random(f"random {seed}")
    frame, left, mask = 0, 0, 0

    def play(ram: Ram) -> int:
        nonlocal frame, left, mask
        frame += 1
        outside = _outside_play(ram, frame)
        if outside is not None:
            return outside
        if left == 0:
            left = rng.randint(1, 16)
            mask = rng.randrange(256) & ~(START | SELECT)
            if rng.random() < 0.02:
                mask |= START
        left -= 1
        return mask

    return play


def right_player(seed: int) -> Player:
    """Mostly running right, with jumps of every length."""
    rng = random.Random(f"right {seed}")
    frame, left, mask, jump = 0, 0, 0, 0

    def play(ram: Ram) -> int:
        nonlocal frame, left, mask, jump
        frame += 1
        outside = _outside_play(ram, frame)
        if outside is not None:
            return outside
        if left == 0:
            left = rng.randint(4, 40)
            mask = rng.choices(
                [RIGHT, RIGHT | B, RIGHT | DOWN | B, LEFT, DOWN, 0], [30, 50, 4, 8, 4, 4]
            )[0]
        left -= 1
        if jump == 0 and rng.random() < 0.05:
            jump = rng.randint(2, 36)
        elif jump > 0:
            jump -= 1
        return mask | (A if jump > 1 else 0)

    return play


def scripted_player(seed: int) -> Player:
    """Runs right, jumps when it is stopped, at regular distances and where it died before; swims
    in strokes, throws fireballs, backs off when it is stuck."""
    rng = random.Random(f"scripted {seed}")
    period = rng.randint(40, 90)
    frame, jump, stuck, back = 0, 0, 0, 0

    def play(ram: Ram) -> int:
        nonlocal frame, jump, stuck, back
        frame += 1
        outside = _outside_play(ram, frame)
        if outside is not None:
            return outside
        if ram[_SWIMMING]:
            return RIGHT | (A if frame % 14 < 4 else 0) | (B if frame % 8 < 4 else 0)
        on_ground = ram[_VERTICAL_FLOAT] == 0
        slow = ram[_X_SPEED] < 4
        stuck = stuck + 1 if slow else 0
        if stuck > 90:
            stuck, back = 0, rng.randint(20, 60)
        if jump > 0:
            jump -= 1
        elif on_ground and (slow or frame % period == 0):
            jump = rng.randint(8, 34)
        back = max(0, back - 1)
        run = B if frame % 24 < 20 else 0
        return (LEFT if back else RIGHT) | run | (A if jump > 1 else 0)

    return play


PLAYERS: dict[str, Callable[[int], Player]] = {
    "random": random_player,
    "right": right_player,
    "scripted": scripted_player,
}
