"""A rollout on its way from an actor to the learner, and the rollout that an update learns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.collect.archive import Lasted
from warpzone.collect.episodes import Ended
from warpzone.collect.guide import FAILURES
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.env.rewards import SHAPING_FIELDS

#: Field of a rollout whose first dimension is the lane; in all others but the state it is the
#: second.
BY_LANE = "last_value"


class Parcel(NamedTuple):
    """A rollout of some lanes, in arrays, which Ray does not copy."""

    arrays: dict[str, NDArray[Any]]
    state: tuple[NDArray[Any], ...]
    #: Seconds by owner.
    owners: dict[str, float]
    ended: list[Ended]
    #: What the guide says of the lanes.
    metrics: dict[str, float]
    #: Where the lanes are: their infos after the last step.
    info: NDArray[np.int32]
    #: What it has found for the archive.
    lasted: Sequence[Lasted] = ()


def pack_rollout(rollout: Rollout) -> tuple[dict[str, NDArray[Any]], tuple[NDArray[Any], ...]]:
    """The tensors of a rollout on the host, and its memory."""
    values = rollout._asdict()
    state = tuple(part.cpu().numpy() for part in values.pop("state"))
    return {name: part.cpu().numpy() for name, part in values.items()}, state


class Landing:
    """Memory for the rollout of an update, used again and again: recorded CUDA graphs read frames
    where they were."""

    def __init__(self, lanes: int, device: torch.device) -> None:
        self._lanes = lanes
        self._device = device
        self._host: dict[str, Tensor] = {}
        self._there: dict[str, Tensor] = {}

    def put(self, parcels: Sequence[Parcel]) -> Rollout:
        """One rollout of all lanes. The tensors are written again by the next call."""
        share = self._lanes // len(parcels)
        for index, parcel in enumerate(parcels):
            lanes = slice(index * share, (index + 1) * share)
            for name, axis, part in _parts(parcel):
                self._place(name, axis, part).numpy()[(slice(None),) * axis + (lanes,)] = part
        whole = self._host
        if self._device.type == "cuda":
            whole = self._there
            for name, tensor in self._host.items():
                whole[name].copy_(tensor, non_blocking=True)
        state = tuple(whole[f"state{index}"] for index in range(len(parcels[0].state)))
        return Rollout(**{name: whole[name] for name in parcels[0].arrays}, state=state)

    def _place(self, name: str, axis: int, part: NDArray[Any]) -> Tensor:
        if name not in self._host:
            shape = (*part.shape[:axis], self._lanes, *part.shape[axis + 1 :])
            dtype = torch.from_numpy(np.empty(0, part.dtype)).dtype
            pinned = self._device.type == "cuda"
            self._host[name] = torch.empty(shape, dtype=dtype, pin_memory=pinned)
            if pinned:
                self._there[name] = torch.empty(shape, dtype=dtype, device=self._device)
        return self._host[name]


def _parts(parcel: Parcel) -> list[tuple[str, int, NDArray[Any]]]:
    """Names, the dimension of lanes, and arrays."""
    arrays = [(name, int(name != BY_LANE), part) for name, part in parcel.arrays.items()]
    return [*arrays, *((f"state{index}", 0, part) for index, part in enumerate(parcel.state))]


def mean_owners(parcels: Sequence[Parcel]) -> dict[str, float]:
    """Seconds by owner: the actors work side by side."""
    names = {name for parcel in parcels for name in parcel.owners}
    return {
        name: sum(parcel.owners.get(name, 0.0) for parcel in parcels) / len(parcels)
        for name in sorted(names)
    }


class Tallies:
    """What the guides of all actors say, as one."""

    def __init__(self) -> None:
        #: Failures so far, by actor and life.
        self._failures: dict[tuple[int, int], float] = {}

    def add(self, parts: Sequence[tuple[tuple[int, int], Mapping[str, float]]]) -> dict[str, float]:
        """Sums of what a rollout adds up, and means of everything else. The parts are by actor and
        life."""
        for who, metrics in parts:
            self._failures[who] = metrics[FAILURES]
        row = {}
        for name in parts[0][1]:
            total = sum(metrics[name] for _, metrics in parts)
            row[name] = total if name in SHAPING_FIELDS else total / len(parts)
        row[FAILURES] = sum(self._failures.values())
        return row


def parcel_bytes(config: TrainConfig, actions: int) -> int:
    """Bytes of the parcels of one update, roughly: frames are nearly all of it."""
    frames = (config.rollout_steps + config.frame_stack) * config.num_envs
    picture = int(np.prod(config.picture))
    return frames * (picture + 64 + 4 * actions)
