"""`MarioVectorEnv` as a Stable-Baselines3 `VecEnv` (needs the `sb3` extra).

SB3 resets inside the step that ends an episode and puts the last observation of the old one into
`info["terminal_observation"]`; the native environment does that in its SAME_STEP mode.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import Wrapper
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv  # type: ignore[import-not-found,unused-ignore]

from warpzone.env.vector import MarioVectorEnv

Indices = None | int | Iterable[int]

_MOST_AXES = 3


class Sb3VecEnv(VecEnv):  # type: ignore[misc,unused-ignore]
    """Takes the options of `MarioVectorEnv` (the number of lanes may come first, without its name),
    or an environment made in SAME_STEP mode.

    Infos hold the fields in `info_keys` only: SB3 wants one dictionary for each lane and step.
    """

    def __init__(
        self,
        env: MarioVectorEnv | int | None = None,
        *,
        info_keys: Sequence[str] = ("x_pos", "flag_get", "score", "world", "stage"),
        **options: Any,
    ) -> None:
        if isinstance(env, int | np.integer):
            env = MarioVectorEnv(int(env), autoreset_mode=AutoresetMode.SAME_STEP, **options)
        elif env is None:
            env = MarioVectorEnv(autoreset_mode=AutoresetMode.SAME_STEP, **options)
        elif options:
            raise ValueError("give an environment or its options, not both")
        if not isinstance(env, MarioVectorEnv):
            raise TypeError(f"Sb3VecEnv takes an environment or a number of lanes, not {env!r}")
        if env.autoreset_mode is not AutoresetMode.SAME_STEP:
            raise ValueError("Stable-Baselines3 needs autoreset_mode=AutoresetMode.SAME_STEP")
        if len(env.single_observation_space.shape or ()) > _MOST_AXES:
            raise ValueError(
                "Stable-Baselines3 takes pictures with three axes; in colour, give "
                "layout='channels_last' or layout='channels_first'"
            )
        self.env = env
        self._keys = tuple(info_keys)
        self._actions: NDArray[np.int64] | None = None
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> NDArray[np.uint8]:
        """All lanes anew, with the seeds given to `seed()`."""
        given = any(seed is not None for seed in self._seeds)
        obs, infos = self.env.reset(seed=list(self._seeds) if given else None)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = self._split(infos)
        return obs

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Keeps the actions; `step_wait` runs them."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Runs the step."""
        if self._actions is None:
            raise RuntimeError("step_wait() without step_async()")
        obs, reward, terminated, truncated, infos = self.env.step(self._actions)
        self._actions = None
        rows = self._split(infos)
        done = terminated | truncated
        for lane in np.flatnonzero(done):
            row = {key: infos["final_info"][key][lane].tolist() for key in self._keys}
            row["terminal_observation"] = infos["final_obs"][lane]
            row["TimeLimit.truncated"] = bool(truncated[lane] and not terminated[lane])
            rows[lane] = row
        return obs, reward, done, rows

    def close(self) -> None:
        """Frees the lanes."""
        self.env.close()

    def get_images(self) -> list[NDArray[np.uint8] | None]:
        """The screens of all lanes."""
        return [self.env.screen(lane) for lane in range(self.num_envs)]

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """An attribute of the environment, repeated for each lane."""
        value = getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Lanes have no attributes of their own."""
        raise AttributeError(f"lanes of a native environment have no attribute {attr_name!r}")

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Calls a method that takes a lane, such as `screen` or `ram`, for each lane."""
        method = getattr(self.env, method_name)
        return [method(lane, *method_args, **method_kwargs) for lane in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[Wrapper], indices: Indices = None) -> list[bool]:
        """Lanes are never wrapped."""
        return [False for _ in self._get_indices(indices)]

    def _split(self, infos: dict[str, Any]) -> list[dict[str, Any]]:
        columns = [infos[key].tolist() for key in self._keys]
        return [dict(zip(self._keys, row, strict=True)) for row in zip(*columns, strict=True)]
