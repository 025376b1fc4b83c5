"""The environments of gym-super-mario-bros over the native engine."""

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.env.infos import STATUS_NAMES
from warpzone.env.single import MarioEnv

Obs = NDArray[np.uint8]

#: The ROM of each mode, by whether it is of The Lost Levels.
ROMS = {
    False: {
        "vanilla": "eu",
        "downsample": "downsample",
        "pixel": "pixel",
        "rectangle": "rectangle",
    },
    True: {"vanilla": "lost-levels", "downsample": "lost-levels-downsample"},
}
_INFO = ("coins", "flag_get", "life", "score", "stage", "time", "world", "x_pos", "y_pos")
#: The keys that it names for right, left, down, up, start, select, B and A.
_KEYS = "dasw\r po"
_WORLDS, _STAGES = range(1, 9), range(1, 5)


class SuperMarioBrosEnv(MarioEnv):
    """One game with the screen as observation, button masks as actions and one frame for each step.

    With `timing="nes-py"` every step is that of gym-super-mario-bros; `"vblank"` is many times as
    fast and ends frames where the console does, a few instructions later.
    """

    reward_range = (-15, 15)

    def __init__(
        self,
        rom_mode: str = "vanilla",
        lost_levels: bool = False,
        target: tuple[int, int] | None = None,
        *,
        timing: str = "nes-py",
        render_mode: str | None = None,
        rom: str | bytes | os.PathLike[str] | None = None,
    ) -> None:
        """`rom` replaces the one that `rom_mode` and `lost_levels` name."""
        if not isinstance(lost_levels, bool):
            raise TypeError(f"lost_levels must be True or False, not {lost_levels!r}")
        if rom_mode not in ROMS[lost_levels]:
            known = ", ".join(ROMS[lost_levels])
            raise ValueError(f"rom_mode must be one of {known}, not {rom_mode!r}")
        super().__init__(
            rom=ROMS[lost_levels][rom_mode] if rom is None else rom,
            stages="game" if target is None else _stage(target),
            end="game_over" if target is None else "life",
            timing=timing,
            render_mode=render_mode,
            reward="gym",
            actions=bytes(range(256)),
            frame_skip=1,
            frame_stack=1,
            size=(240, 256),
            gray=False,
            layout="picture",
        )

    @property
    def ram(self) -> Obs:  # type: ignore[override]
        """The RAM itself, read-only: it changes with every step."""
        return self._lanes.ram_view(0)

    @property
    def screen(self) -> Obs:  # type: ignore[override]
        """A copy of the last frame."""
        return self._lanes.screen(0)

    def get_keys_to_action(self) -> dict[tuple[int, ...], int]:
        """The mask of each combination of keys."""
        pairs = list(zip(map(ord, _KEYS), (128, 64, 32, 16, 8, 4, 2, 1), strict=True))
        return {
            tuple(sorted(key for key, _ in held)): sum(bit for _, bit in held)
            for count in range(len(pairs) + 1)
            for held in itertools.combinations(pairs, count)
        }

    def get_action_meanings(self) -> list[str]:
        """That of the first mask, as nes-py gives it; `JoypadSpace` names all of its actions."""
        return ["NOOP"]

    def _info(self, info: dict[str, Any]) -> dict[str, Any]:
        return {**{name: info[name] for name in _INFO}, "status": STATUS_NAMES[info["status"]]}


class SuperMarioBrosRandomStagesEnv(SuperMarioBrosEnv):
    """Another stage at every reset; the same seeds draw the stages that the original draws."""

    def __init__(
        self, rom_mode: str = "vanilla", stages: Sequence[str] | None = None, **options: Any
    ) -> None:
        super().__init__(rom_mode, target=(1, 1), **options)
        self.stages = stages
        self._draws = np.random.RandomState()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, dict[str, Any]]:
        """Draws a stage; `options={"stages": [...]}` says of which for this episode."""
        given = dict(options or {})
        stages = given.pop("stages", self.stages)
        if seed is not None:
            self._draws.seed(seed)
        if stages is not None and len(stages) > 0:
            name = str(self._draws.choice(stages))
        else:
            world = self._draws.randint(_WORLDS.start, _WORLDS.stop)
            name = f"{world}-{self._draws.randint(_STAGES.start, _STAGES.stop)}"
        self._lanes.set_stages(0, name)
        return super().reset(seed=seed, options=given)


def _stage(target: tuple[int, int]) -> str:
    if not isinstance(target, tuple) or len(target) != 2:
        raise TypeError(f"target is a world and a stage, such as (1, 2), not {target!r}")
    return f"{target[0]}-{target[1]}"
