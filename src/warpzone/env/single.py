"""One game, as a Gymnasium environment."""

import os
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from gymnasium import Env
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from warpzone.env.atari import AtariView
from warpzone.env.options import Native, OptionArgs
from warpzone.env.steering import Restarts, Steering
from warpzone.env.vector import MarioVectorEnv

if TYPE_CHECKING:
    from warpzone import _engine

Obs = NDArray[np.uint8]


class MarioEnv(Restarts, Steering, Env[Obs, np.int64]):
    """A one-lane `MarioVectorEnv` without autoreset; it takes the same options.

    `numpy_infos`: numbers of infos are NumPy's instead of Python's, as TorchRL reads them.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["rgb_array", "human"],
        "render_fps": 15,
    }

    def __init__(
        self,
        *,
        rom: str | bytes | os.PathLike[str] | None = None,
        native: Native = "auto",
        render_mode: str | None = None,
        numpy_infos: bool = False,
        **options: Unpack[OptionArgs],
    ) -> None:
        self._lanes = MarioVectorEnv(
            1,
            num_threads=1,
            rom=rom,
            native=native,
            render_mode=render_mode,
            autoreset_mode=AutoresetMode.DISABLED,
            **options,
        )
        self.render_mode = render_mode
        shared = ("render_fps", "render_modes")
        self.metadata = {**self.metadata, **{name: self._lanes.metadata[name] for name in shared}}
        self.observation_space = self._lanes.single_observation_space
        self.action_space = self._lanes.single_action_space
        self.action_names = self._lanes.action_names
        self._numpy_infos = numpy_infos
        self._over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Obs, dict[str, Any]]:
        """Starts a new episode. There are no reset options."""
        super().reset(seed=seed)
        if options:
            raise ValueError(f"unknown reset option {next(iter(options))!r}; there are none")
        obs, _ = self._lanes.reset(seed=seed)
        self._over = False
        self._show()
        return obs[0], self._info(self._lanes.info(0))

    def step(self, action: np.int64 | int) -> tuple[Obs, float, bool, bool, dict[str, Any]]:
        """One step."""
        if self._over:
            raise ResetNeeded("the episode is over; call reset() first")
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not in {self.action_space}")
        # The vector's own info dictionary is skipped: one lane's numbers are made from its row.
        lanes = self._lanes
        obs, reward, terminated, truncated, block = lanes._step(np.array([action], np.int64))
        ended = bool(terminated[0]), bool(truncated[0])
        self._over = any(ended)
        self._show()
        return obs[0], float(reward[0]), *ended, self._info(lanes._infos.single(block.rows[0]))

    def render(self) -> Obs | None:
        """The screen (`rgb_array`), or None (`human`: the window follows every step)."""
        if self.render_mode is None:
            raise ValueError("render() needs render_mode='rgb_array' or 'human' at construction")
        return self._lanes.screen(0) if self.render_mode == "rgb_array" else None

    def ram(self) -> Obs:
        """A copy of the 2 KiB of RAM."""
        return self._lanes.ram(0)

    def screen(self) -> Obs:
        """The last frame at full resolution: 240 x 256 x 3, RGB."""
        return self._lanes.screen(0)

    def save(self) -> bytes:
        """The game as bytes, with its observation history."""
        return self._lanes.save(0)

    def load(self, state: bytes) -> Obs:
        """Puts a saved game back and returns its observation."""
        self._lanes.load(0, state)
        self._over = False
        return self._lanes.observation(0)

    def get_action_meanings(self) -> list[str]:
        """The buttons of each action, such as `RIGHT+A`."""
        return list(self.action_names)

    @property
    def _frameskip(self) -> int:
        # Gymnasium's AtariPreprocessing asks for this name.
        return self._lanes.options.frame_skip

    @property
    def ale(self) -> AtariView:
        """Lives and screen, as Gymnasium's `AtariPreprocessing` reads them."""
        return AtariView(self._lanes)

    def close(self) -> None:
        """Frees the game and its window."""
        if hasattr(self, "_lanes"):
            self._lanes.close()

    def _live(self) -> "_engine.Vector":
        return self._lanes._live()

    def _ready(self) -> "_engine.Vector":
        return self._lanes._ready()

    def _keep(self, key: Hashable, method: str, *arguments: Any, **options: Any) -> None:
        self._lanes._keep(key, method, *arguments, **options)

    def _drop(self, key: Hashable) -> None:
        self._lanes._drop(key)

    def _info(self, info: dict[str, Any]) -> dict[str, Any]:
        if not self._numpy_infos:
            return info
        return {name: np.asarray(value)[()] for name, value in info.items()}

    def _show(self) -> None:
        if self.render_mode == "human":
            self._lanes.render()
