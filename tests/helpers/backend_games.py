"""Small environments for `--backend backend_games:...`: they move, lie, hang or die on demand."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

#: Actions of the `simple` set with a special meaning in `fragile`.
DIE, HANG, FAIL = 6, 5, 4
#: What `third_breaks` has made, and what of it was closed.
MADE: list[Any] = []
CLOSED: list[int] = []


class Walk(gymnasium.Env[Any, Any]):
    """Mario walks 3 pixels with each step to the right; the episode ends at x = 400."""

    observation_space = spaces.Box(0, 255, (60, 64, 3), np.uint8)
    action_space = spaces.Discrete(7)

    def __init__(self, stage: str = "1-1") -> None:
        self.stage = stage
        self.x = self.clock = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.x, self.clock = 40, 0
        return self.picture(), self.info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.clock += 1
        self.x += 3 if 1 <= action <= 4 else 0
        return self.picture(), 1.0, self.x >= 400, False, self.info()

    def picture(self) -> Any:
        picture = np.zeros((60, 64, 3), np.uint8)
        picture[:, self.x % 64] = 200
        picture[self.clock % 60, :] = 90
        return picture

    def info(self) -> dict[str, Any]:
        return {"x_pos": self.x, "flag_get": self.x >= 400, "score": 10 * self.clock, "life": 2}


class WithRam(Walk):
    """x is in RAM only."""

    def info(self) -> dict[str, Any]:
        return {"score": 0}

    @property
    def ram(self) -> Any:
        ram = np.zeros(2048, np.uint8)
        ram[0x6D], ram[0x86] = divmod(self.x, 256)
        return ram


class Hidden(Walk):
    """x is where another project keeps it."""

    def info(self) -> dict[str, Any]:
        return {"metrics": {"mario_x": self.x}, "lives": 3}


class Masks(Walk):
    """Takes button masks."""

    action_space = spaces.Discrete(256)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return super().step(1 if action & 128 else 0)


class Fragile(Walk):
    """Dies, hangs or raises in the middle of a step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if action == DIE:
            os.kill(os.getpid(), signal.SIGKILL)
        if action == HANG:
            time.sleep(3600)
        if action == FAIL:
            raise RuntimeError("the cartridge fell out")
        return super().step(action)


class Mortal(Walk):
    """Dies in the third step after it was made."""

    steps = 0

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


class Generous(Walk):
    """Goes on behind the flag, and shows it for as long as Mario stands there."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        picture, reward, _, truncated, info = super().step(action)
        return picture, reward, False, truncated, info


class Looped(Walk):
    """A maze that sets Mario back past the start of its map once, where x wraps around."""

    looped = False

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        result = super().step(action)
        if self.x > 50 and not self.looped:
            self.x, self.looped = 40, True
            result[4]["x_pos"] = 0xFFFE
        return result


class Stub(Walk):
    """What cannot pass a trial: everything is zero, whatever happens."""

    def picture(self) -> Any:
        return np.zeros((60, 64, 3), np.uint8)

    def info(self) -> dict[str, Any]:
        return {"x_pos": 0}


def walk() -> Walk:
    return Walk()


def staged(stage: str) -> Walk:
    return Walk(stage)


def with_ram() -> WithRam:
    return WithRam()


def hidden() -> Hidden:
    return Hidden()


def masks() -> Masks:
    return Masks()


def fragile() -> Fragile:
    return Fragile()


def mortal() -> Mortal:
    return Mortal()


def generous() -> Generous:
    return Generous()


def looped() -> Looped:
    return Looped()


def third_breaks() -> Walk:
    """Only two can be had; they say when they are closed."""
    if len(MADE) == 2:
        raise OSError("no third cartridge")
    walk = Walk()
    walk.close = lambda: CLOSED.append(1)  # type: ignore[method-assign]
    MADE.append(walk)
    return walk


def stub() -> Stub:
    return Stub()


def stuck() -> Walk:
    """Never made."""
    time.sleep(3600)
    raise AssertionError("nobody waits this long")


def broken() -> Walk:
    raise OSError("no cartridge")


def lonely() -> object:
    """Not an environment."""
    return object()
