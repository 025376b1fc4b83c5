"""What every back-end looks like: a game that can be advanced, and lanes that can be stepped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.options import Options

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Actions = NDArray[np.int64]

RAM_SIZE = 2048
#: The whole game instead of one stage, as the engine counts.
WHOLE_GAME = -1


class BackendError(RuntimeError):
    """A back-end that cannot be had or does not work; one sentence that says why."""


class Machine(Protocol):
    """One emulator with the game in it, advanced frame by frame."""

    def start(self, stage: int) -> None:
        """Goes back to the start of a stage (0..31), or of the game (`WHOLE_GAME`)."""

    def advance(self, buttons: int) -> None:
        """One frame with this button mask."""

    def ram(self) -> Bytes:
        """The 2 KiB of RAM; may be a view that changes with the next frame."""

    def skip_scenes(self, single_stage: bool) -> None:
        """Runs through what the player cannot influence."""

    def screen(self) -> Bytes:
        """240 x 256 x 3 RGB; may be a view that changes with the next frame."""

    def close(self) -> None:
        """Frees the emulator."""


class Lanes(Protocol):
    """Lanes with the calls of `_engine.Vector` that training needs, described there."""

    @property
    def num_lanes(self) -> int: ...
    @property
    def obs_shape(self) -> tuple[int, ...]: ...
    def seed(self, seeds: Sequence[int | None]) -> None: ...
    def reset(self, mask: Bools | None, obs: Bytes, info: Ints) -> None: ...
    def step(
        self,
        actions: Actions,
        obs: Bytes,
        reward: Floats,
        terminated: Bools,
        truncated: Bools,
        info: Ints,
        final_obs: Bytes | None,
        final_info: Ints | None,
    ) -> None: ...
    def set_reward_weights(self, weights: _engine.RewardWeights) -> None: ...
    def set_stage_weights(self, weights: Sequence[float]) -> None: ...
    def set_script(self, masks: bytes) -> None: ...
    def force(self, lanes: Sequence[int], masks: bytes) -> None: ...
    def set_restart_share(self, share: float) -> None: ...
    def take_shaping(self) -> list[float]: ...
    def ram(self, lanes: Sequence[int]) -> Bytes: ...
    def counters(self) -> dict[str, int]:
        """Running totals of what went wrong and was dealt with."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class RamX:
    """Where x lies in RAM, for environments whose info does not tell it."""

    enabled: bool = False
    high: int = _engine.RAM["player_x_page"]
    low: int = _engine.RAM["player_x"]


@dataclass(frozen=True)
class BackendSpec:
    """Everything a process needs to make lanes of a back-end. It can be pickled."""

    #: `nes-py`, `retro` or `module:factory`.
    backend: str
    #: The ROM file the emulators load.
    rom: str
    options: Options
    #: What each lane draws from, as the engine takes it.
    stages: tuple[tuple[int, ...], ...]
    #: A lane that ends starts anew in the same step.
    autoreset: bool = True
    ram_x: RamX = field(default_factory=RamX)
    #: Environments of other groups before these lanes, and of all groups; 0 is these lanes alone.
    before: int = 0
    total: int = 0
    #: Of the file of a `module:factory`, which the user has agreed to.
    digest: str = ""

    def only(self, lane: int) -> BackendSpec:
        """The same for a single lane."""
        one = (self.stages[lane],)
        return replace(self, stages=one, before=self.before + lane, total=self.of)

    @property
    def of(self) -> int:
        """How many environments there are in all groups."""
        return self.total or len(self.stages)

    def env(self, lane: int) -> int:
        """The number of a lane's environment, counted from 1 over all groups."""
        return self.before + lane + 1
