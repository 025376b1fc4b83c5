"""A game of another back-end as a Gymnasium environment, and many as a vector environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Unpack

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env import machinery, seeds
from warpzone.env.actions import action_table
from warpzone.env.backends.interface import Bools, Bytes, Floats, Lanes, RamX
from warpzone.env.backends.opening import RomFile, agree, make_spec, open_lanes
from warpzone.env.backends.shared_rows import layout
from warpzone.env.backends.worker_lanes import WorkerSettings
from warpzone.env.infos import InfoBuilder
from warpzone.env.options import OptionArgs, make_options
from warpzone.env.steering import Steering

Rom = str | bytes | os.PathLike[str] | None


class BackendEnv(Steering, gymnasium.Env[Bytes, Any]):
    """One game in this process; it works in Gymnasium's Sync- and AsyncVectorEnv. Options are those
    of `MarioEnv`."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        backend: str,
        *,
        rom: Rom = None,
        ram_x: RamX | None = None,
        **options: Unpack[OptionArgs],
    ) -> None:
        chosen = make_options(options)
        agree(backend)
        self._rom = RomFile(machinery.rom_image(rom))
        with ExitStack() as undo:
            undo.callback(self._rom.close)
            spec = make_spec(backend, self._rom, chosen, 1, autoreset=False, ram_x=ram_x)
            self._lanes = open_lanes(spec, sync=True, report=lambda event: None)
            undo.pop_all()
        self.action_space = spaces.Discrete(len(action_table(chosen.actions).masks))
        self._layout = chosen.layout_of(tuple(self._lanes.obs_shape))
        self.observation_space = self._layout.space()
        self._arrays = _arrays(self._lanes)
        self._infos = InfoBuilder(_engine.INFO_FIELDS, 1)
        self._started = self._over = self._closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Bytes, dict[str, Any]]:
        """Starts an episode; the seed draws stages, delays and sticky actions as the engine's."""
        super().reset(seed=seed)
        if options:
            raise ValueError(f"unknown reset option {next(iter(options))!r}; there are none")
        lanes = self._live()
        if seed is None and not self._started:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            lanes.seed([seeds.one_seed(seed)])
        lanes.reset(None, self._arrays["obs"], self._arrays["info"])
        self._started, self._over = True, False
        return self._observation(), self._infos.single(self._arrays["info"][0])

    def step(self, action: Any) -> tuple[Bytes, float, bool, bool, dict[str, Any]]:
        """One step."""
        lanes, arrays = self._ready(), self._arrays
        if self._over:
            raise ResetNeeded("the episode is over; call reset() first")
        lanes.step(machinery.action_ids([action], 1), *arrays.values())
        self._over = bool(arrays["terminated"][0] or arrays["truncated"][0])
        return (
            self._observation(),
            float(arrays["reward"][0]),
            bool(arrays["terminated"][0]),
            bool(arrays["truncated"][0]),
            self._infos.single(arrays["info"][0]),
        )

    def ram(self) -> Bytes:
        """A copy of the 2 KiB of RAM."""
        return np.asarray(self._ready().ram([0])[0])

    def close(self) -> None:
        """Frees the emulator. Closing twice does no harm."""
        self._closed = True
        self._lanes.close()
        self._rom.close()

    def _observation(self) -> Bytes:
        # A copy: the next step writes over the array.
        copy: Bytes = self._layout(self._arrays["obs"].copy())[0]
        return copy

    def _live(self) -> Lanes:
        return _open(self._lanes, self._closed)

    def _ready(self) -> Lanes:
        return _begun(self._live(), self._started)


class BackendVectorEnv(Steering, VectorEnv[Bytes, NDArray[np.int64], Any]):
    """Games in worker processes that are replaced when they die or hang; an episode that ends
    starts anew in the same step. With `sync=True` all play in this process."""

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": [],
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        backend: str,
        num_envs: int = 1,
        *,
        rom: Rom = None,
        ram_x: RamX | None = None,
        sync: bool = False,
        settings: WorkerSettings | None = None,
        **options: Unpack[OptionArgs],
    ) -> None:
        super().__init__()
        chosen = make_options(options)
        self.num_envs = machinery.count("num_envs", num_envs, 1024)
        agree(backend)
        self._rom = RomFile(machinery.rom_image(rom))
        with ExitStack() as undo:
            undo.callback(self._rom.close)
            spec = make_spec(backend, self._rom, chosen, num_envs, ram_x=ram_x)
            self.lanes: Lanes = open_lanes(spec, settings, sync=sync)
            undo.pop_all()
        self.single_action_space = spaces.Discrete(len(action_table(chosen.actions).masks))
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._layout = chosen.layout_of(tuple(self.lanes.obs_shape))
        self.single_observation_space = self._layout.space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._infos = InfoBuilder(_engine.INFO_FIELDS, num_envs)
        self._started = False

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Bytes, dict[str, Any]]:
        """Starts new episodes in all lanes, or in those of `options={"reset_mask": ...}`."""
        lanes = self._live()
        mask = machinery.reset_mask(options, self.num_envs)
        if mask is not None and not self._started:
            raise ResetNeeded("the first reset must be of all lanes, without a reset_mask")
        if seed is None and not self._started:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        if seed is not None:
            each = seeds.expand(seed, self.num_envs)
            if mask is not None:
                each = [value if mask[lane] else None for lane, value in enumerate(each)]
            lanes.seed(each)
        obs: Bytes = np.zeros((self.num_envs, *self.lanes.obs_shape), np.uint8)
        block = self._infos.take()
        lanes.reset(mask, obs, block.rows)
        self._started = True
        return self._layout(obs), block.infos() if mask is None else block.masked(mask)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Bytes, Floats, Bools, Bools, dict[str, Any]]:
        """One step of every lane."""
        lanes = self._ready()
        arrays = _arrays(lanes)
        block = self._infos.take()
        arrays["info"] = block.rows
        lanes.step(machinery.action_ids(actions, self.num_envs), *arrays.values())
        infos = block.infos()
        ended = arrays["terminated"] | arrays["truncated"]
        if ended.any():
            final_obs = self._layout(arrays["final_obs"])
            self._infos.add_final(infos, ended, final_obs, arrays["final_info"])
        obs = self._layout(arrays["obs"])
        return obs, arrays["reward"], arrays["terminated"], arrays["truncated"], infos

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the workers."""
        self.lanes.close()
        self._rom.close()

    def _live(self) -> Lanes:
        return _open(self.lanes, self.closed)

    def _ready(self) -> Lanes:
        return _begun(self._live(), self._started)


def _open(lanes: Lanes, closed: bool) -> Lanes:
    if closed:
        raise ClosedEnvironmentError("this environment is closed; make a new one")
    return lanes


def _begun(lanes: Lanes, started: bool) -> Lanes:
    if not started:
        raise ResetNeeded("call reset() before anything else")
    return lanes


def _arrays(lanes: Lanes) -> dict[str, NDArray[Any]]:
    return {
        name: np.zeros((lanes.num_lanes, *shape), kind)
        for name, shape, kind in layout(lanes.obs_shape)
    }
