"""Many games at once, as a Gymnasium vector environment."""

import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env import machinery, seeds
from warpzone.env.actions import action_table
from warpzone.env.buffers import BufferPool
from warpzone.env.copies import Copies
from warpzone.env.infos import InfoBlock, InfoBuilder
from warpzone.env.lane_access import LaneAccess
from warpzone.env.options import Native, OptionArgs, make_options
from warpzone.env.steering import Restarts, Steering

Obs = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
StepResult = tuple[Obs, Floats, Bools, Bools, dict[str, Any]]

MAX_LANES = 65_536


class MarioVectorEnv(Copies, LaneAccess, Restarts, Steering, VectorEnv[Obs, Ints, Any]):
    """`num_envs` lanes stepped by native threads straight into NumPy arrays.

    Every option has a default; `warpzone.env.options.Options` says what each one means. Same
    seeds and actions give the same results for any number of threads. Arrays returned by `reset`,
    `step` and `recv` belong to the caller and are never written again.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - as Gymnasium declares it
        "render_modes": ["rgb_array", "human"],
        "render_fps": 15,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        num_threads: int | None = None,
        rom: str | bytes | os.PathLike[str] | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        batch_size: int | None = None,
        native: Native = "auto",
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **options: Unpack[OptionArgs],
    ) -> None:
        super().__init__()
        if max_episode_steps is not None:
            options["time_limit"] = max_episode_steps
        self.options = chosen = make_options(options)
        self.num_envs = machinery.count("num_envs", num_envs, MAX_LANES)
        self.autoreset_mode = machinery.autoreset_mode(autoreset_mode)
        num_envs = self.num_envs
        self.batch_size = machinery.batch_size(batch_size, num_envs)
        self.render_mode = machinery.render_mode(render_mode, self.metadata["render_modes"])
        self.metadata = {
            **self.metadata,
            "render_modes": machinery.possible_modes(
                self.metadata["render_modes"], self.render_mode
            ),
            "autoreset_mode": self.autoreset_mode,
            "render_fps": max(1, round(60 / chosen.frame_skip)),
        }
        self.action_names = action_table(chosen.actions).names

        self._image = image = machinery.rom_image(rom)
        self._arguments = {
            "num_envs": num_envs,
            "num_threads": num_threads,
            "rom": rom,
            "autoreset_mode": self.autoreset_mode,
            "batch_size": batch_size,
            "native": native,
            "render_mode": render_mode,
            **options,
        }
        self._told = {}
        program = machinery.native_program(image, native, chosen.timing)
        #: Whether frames run as translated code rather than in the interpreter.
        self.native = program is not None
        self._engine = chosen.make_vector(
            image,
            num_envs,
            autoreset=machinery.ENGINE_AUTORESET[self.autoreset_mode],
            native=program,
            num_threads=machinery.threads(num_threads, num_envs),
        )
        self._process = os.getpid()
        self._started = False

        self.single_action_space = spaces.Discrete(len(self.action_names))
        self.action_space = batch_space(self.single_action_space, num_envs)
        shape = tuple(self._engine.obs_shape)
        self._layout = chosen.layout_of(shape)
        self.single_observation_space = self._layout.space()

        self._pool = BufferPool((num_envs, *shape), np.uint8)
        self._batch_pool = BufferPool((self.batch_size, *shape), np.uint8)
        self._infos = InfoBuilder(_engine.INFO_FIELDS, num_envs)
        self._batch_infos = InfoBuilder(_engine.INFO_FIELDS, self.batch_size)
        self._final: tuple[Obs, NDArray[np.int32]] | tuple[None, None] = (None, None)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            columns = len(_engine.INFO_FIELDS)
            self._final = (
                np.zeros((num_envs, *shape), np.uint8),
                np.zeros((num_envs, columns), np.int32),
            )

    @cached_property
    def observation_space(self) -> spaces.Space[Obs]:  # type: ignore[override]
        """The space of a batch. Made when asked for: its bounds are as large as four batches."""
        return batch_space(self.single_observation_space, self.num_envs)

    @property
    def num_threads(self) -> int:
        """Threads that step the lanes."""
        return self._live().num_threads

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Obs, dict[str, Any]]:
        """Starts new episodes in all lanes, or in those of `options={"reset_mask": ...}`.

        `seed` is one number from which every lane gets its own, or a list with one for each lane
        (None leaves a lane's random stream as it is).
        """
        engine = self._live()
        mask = machinery.reset_mask(options, self.num_envs)
        if mask is not None and not self._started:
            raise ResetNeeded("the first reset must be of all lanes, without a reset_mask")
        if seed is None and not self._started:
            seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
        if seed is not None:
            super().reset(seed=int(seed) if isinstance(seed, int | np.integer) else None)
            each = seeds.expand(seed, self.num_envs)
            if mask is not None:
                each = [value if mask[lane] else None for lane, value in enumerate(each)]
            engine.seed(each)
        obs: Obs = self._pool.take()
        block = self._infos.take()
        engine.reset(mask, obs, block.rows)
        self._started = True
        return self._layout(obs), block.infos() if mask is None else block.masked(mask)

    def step(self, actions: Ints) -> StepResult:
        """One step of every lane."""
        obs, reward, terminated, truncated, block = self._step(actions)
        infos = block.infos()
        self._add_final(infos, terminated, truncated)
        return obs, reward, terminated, truncated, infos

    def _step(self, actions: Ints) -> tuple[Obs, Floats, Bools, Bools, InfoBlock]:
        engine = self._ready()
        lanes = self.num_envs
        obs: Obs = self._pool.take()
        reward = np.empty(lanes, np.float32)
        terminated = np.empty(lanes, np.bool_)
        truncated = np.empty(lanes, np.bool_)
        block = self._infos.take()
        chosen = machinery.action_ids(actions, lanes)
        engine.step(chosen, obs, reward, terminated, truncated, block.rows, *self._final)
        return self._layout(obs), reward, terminated, truncated, block

    def send(self, actions: Ints, lanes: Ints | None = None) -> None:
        """Starts a step of some lanes (all when `lanes` is None) and returns at once."""
        engine = self._ready()
        chosen = machinery.lane_ids(lanes, self.num_envs)
        engine.send(machinery.action_ids(actions, len(chosen)), chosen)

    def recv(self) -> StepResult:
        """The first `batch_size` lanes that finish; `infos["lane"]` says which they are."""
        engine = self._ready()
        size = self.batch_size
        obs: Obs = self._batch_pool.take()
        reward = np.empty(size, np.float32)
        terminated = np.empty(size, np.bool_)
        truncated = np.empty(size, np.bool_)
        lanes = np.empty(size, np.int64)
        block = self._batch_infos.take()
        final_obs, final_info = self._final
        engine.recv(
            obs,
            reward,
            terminated,
            truncated,
            block.rows,
            lanes,
            None if final_obs is None else final_obs[:size],
            None if final_info is None else final_info[:size],
        )
        infos = block.infos()
        infos["lane"], infos["_lane"] = lanes, np.ones(size, np.bool_)
        self._add_final(infos, terminated, truncated)
        return self._layout(obs), reward, terminated, truncated, infos

    def render(self) -> tuple[Obs, ...] | None:
        """The screens of all lanes (`rgb_array`), or None after showing them (`human`)."""
        self._ready()
        if self.render_mode is None:
            raise ValueError("render() needs render_mode='rgb_array' or 'human' at construction")
        screens = tuple(self.screen(lane) for lane in range(self.num_envs))
        if self.render_mode == "rgb_array":
            return screens
        self._show(screens)
        return None

    def close_extras(self, **kwargs: Any) -> None:
        """Stops the threads and frees the lanes."""
        if hasattr(self, "_engine") and self._process == os.getpid():
            self._engine.close()
        self._close_window()

    def _construct(self, arguments: dict[str, Any]) -> None:
        MarioVectorEnv.__init__(self, **arguments)

    def _live(self) -> "_engine.Vector":
        if self.closed:
            raise ClosedEnvironmentError("this environment is closed; make a new one")
        if self._process != os.getpid():
            raise RuntimeError("this environment was made in another process; make one in this one")
        return self._engine

    def _ready(self) -> "_engine.Vector":
        engine = self._live()
        if not self._started:
            raise ResetNeeded("call reset() before anything else")
        return engine

    def _add_final(self, infos: dict[str, Any], terminated: Bools, truncated: Bools) -> None:
        final_obs, final_info = self._final
        if final_obs is None or final_info is None:
            return
        ended = terminated | truncated
        if ended.any():
            size = len(ended)
            self._infos.add_final(infos, ended, self._layout(final_obs[:size]), final_info[:size])
