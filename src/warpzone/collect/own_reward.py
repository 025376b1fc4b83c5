"""Rewards that a function of the user's own makes, for all lanes of a group at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.collect.lanes import LaneGroup
from warpzone.config import ConfigError, TrainConfig
from warpzone.config.outside import load_plugin
from warpzone.env.infos import COLUMN

Infos = Mapping[str, NDArray[np.int32]]


class Transition(NamedTuple):
    """One step of several lanes, as `--reward module:function` sees it. Arrays have one number for
    each lane and are read only."""

    #: The infos before the step, by name (docs/environments.md): `before["x_pos"]`.
    before: Infos
    #: The infos after it; of an episode that ended with it, the last ones.
    after: Infos
    #: The reward of `--reward progress`, with the weights of the run.
    reward: NDArray[np.float32]
    #: Whether the game ended the episode with this step, by flag or death.
    terminated: NDArray[np.bool_]
    #: Whether a limit of the run did.
    truncated: NDArray[np.bool_]


RewardFunction = Callable[[Transition], Any]


class OwnReward:
    """Replaces the rewards of a group by those of the function."""

    def __init__(self, config: TrainConfig, groups: Sequence[LaneGroup]) -> None:
        self._name = config.own_reward
        found = load_plugin("reward", self._name, config)
        if not callable(found):
            raise ConfigError(f"the reward {self._name} is no function")
        self._function: RewardFunction = found
        self._groups = groups
        #: The infos that lanes had before the step that is played.
        lanes = sum(group.count for group in groups)
        self._before = np.zeros((lanes, len(COLUMN)), np.int32)
        self.restart()

    def restart(self) -> None:
        """All lanes have been reset."""
        for group in self._groups:
            self._before[group.lanes] = group.info

    def apply(self, group: LaneGroup) -> None:
        """After a step of a group."""
        ended = group.terminated | group.truncated
        after = np.where(ended[:, None], group.final_info, group.info)
        made = self._function(
            Transition(
                _columns(self._before[group.lanes].copy()),
                _columns(after),
                _fixed(group.rewards.copy()),
                _fixed(group.terminated.copy()),
                _fixed(group.truncated.copy()),
            )
        )
        rewards = np.asarray(made)
        if rewards.shape != (group.count,) or rewards.dtype.kind not in "fiub":
            raise RuntimeError(
                f"the reward {self._name} must give {group.count} numbers, one for each lane, and "
                f"gives {rewards.dtype} {list(rewards.shape)}"
            )
        if not np.isfinite(rewards).all():
            raise RuntimeError(f"the reward {self._name} gives numbers that are not finite")
        group.rewards[:] = rewards
        # Where an episode ended, the next one has begun.
        self._before[group.lanes] = group.info

    def state_dict(self) -> Tensor:
        """The infos of all lanes."""
        return torch.from_numpy(self._before.copy())

    def load_state_dict(self, saved: Tensor) -> None:
        """Restores `state_dict`."""
        self._before[:] = saved.numpy()


def _columns(rows: NDArray[np.int32]) -> Infos:
    _fixed(rows)
    return {name: rows[:, index] for name, index in COLUMN.items()}


def _fixed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
