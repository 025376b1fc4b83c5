"""nes-py 8.2.1 and gym-super-mario-bros 7.4.0 in their usual setup, for comparison.

Both fail under NumPy 2 because bytes overflow; the three properties that do are repaired here.
"""

import contextlib
import importlib.util
import io
import warnings
from collections import deque
from typing import Any

import numpy as np

from warpzone.bench.rounds import Slice, until
from warpzone.bench.workload import CHUNK, EPISODE_STEPS, HOLD, random_masks

_DYING = {6, 11}


def available() -> bool:
    """Whether the packages of the comparison are installed."""
    wanted = ("nes_py", "gym_super_mario_bros", "gym", "cv2")
    return all(importlib.util.find_spec(name) is not None for name in wanted)


def make_env(variant: str) -> Any:
    """gym-super-mario-bros' 1-1 with the same program as our ROM."""
    # gym prints that it is unmaintained whenever it is imported.
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        import gym.logger
        from gym_super_mario_bros.smb_env import SuperMarioBrosEnv
        from nes_py._rom import ROM

    gym.logger.set_level(gym.logger.ERROR)
    ROM.prg_rom_size = property(lambda self: 16 * int(self.header[4]))
    ROM.chr_rom_size = property(lambda self: 8 * int(self.header[5]))
    SuperMarioBrosEnv._x_position = property(
        lambda self: int(self.ram[0x6D]) * 0x100 + int(self.ram[0x86])
    )
    mode = "rectangle" if variant == "world" else "vanilla"
    return SuperMarioBrosEnv(rom_mode=mode, target=(1, 1))


def raw_frames(variant: str) -> Slice:
    """Frames through nes-py's own `Step()`."""
    env = make_env(variant)
    env.reset()
    plan = random_masks(4096)
    position = 0

    def chunk() -> int:
        nonlocal position
        for mask in plan[position : position + CHUNK]:
            env._frame_advance(mask)
        position = (position + CHUNK) % len(plan)
        if int(env.ram[0x0E]) in _DYING or position % (EPISODE_STEPS * HOLD) < CHUNK:
            env._restore()
        return CHUNK

    return lambda seconds: until(seconds, chunk)


def wrapped_steps(variant: str) -> Slice:
    """Steps of the usual stack: skip 4, gray, area resize to 84x84, the last four frames."""
    import cv2

    cv2.setNumThreads(1)
    env = make_env(variant)
    plan = random_masks(4096)[::HOLD]
    stack: deque[Any] = deque(maxlen=4)
    position = steps = 0
    over = True

    def look(screen: Any) -> Any:
        gray = cv2.cvtColor(screen, cv2.COLOR_RGB2GRAY)
        return cv2.resize(gray, (84, 84), interpolation=cv2.INTER_AREA)

    def step() -> int:
        nonlocal position, steps, over
        if over:
            first = look(env.reset())
            stack.extend([first] * 4)
            steps = 0
        mask = plan[position]
        position = (position + 1) % len(plan)
        reward = 0.0
        for _ in range(HOLD):
            screen, gained, over, _ = env.step(mask)
            reward += gained
            if over:
                break
        stack.append(look(screen))
        np.stack(stack)
        steps += 1
        over = over or steps >= EPISODE_STEPS
        return 1

    return lambda seconds: until(seconds, step)
