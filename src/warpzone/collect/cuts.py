"""Values of truncated episodes, for bootstrapping."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.collect.actor import Actor, autocast
from warpzone.collect.lanes import LaneGroup
from warpzone.collect.store import Store
from warpzone.config import TrainConfig
from warpzone.data.stacking import stack_frames
from warpzone.data.types import State
from warpzone.model.agent import Agent


class Cut(NamedTuple):
    """Lanes of a group whose episodes were truncated by one step."""

    step: int
    lanes: NDArray[np.int64]
    #: Their final observations.
    frames: NDArray[np.uint8]
    #: Their memory.
    state: State


class Cuts:
    """Notes truncated episodes while a rollout is collected, and values all of them at its end:
    during the rollout the engine would wait for each one."""

    def __init__(self, config: TrainConfig, agent: Agent, batch: int, device: torch.device) -> None:
        """batch: how many are valued at a time."""
        self._config = config
        self._agent = agent
        self._batch = batch
        self._device = device
        self._noted: list[Cut] = []

    def note(self, step: int, group: LaneGroup, actor: Actor) -> None:
        """After step `step`, before the next decision."""
        lanes = np.flatnonzero(group.truncated & ~group.terminated)
        if not len(lanes):
            return
        state: State = ()
        if actor.memory:
            index = torch.from_numpy(lanes).to(self._device)
            state = tuple(part[index] for part in actor.memory)
        frames = group.final_frames.numpy()[lanes]
        self._noted.append(Cut(step, lanes + group.lanes.start, frames, state))

    @torch.no_grad()
    def settle(self, store: Store, age: Tensor) -> None:
        """Writes `final_value` of everything noted. age: the store's, where its frames are."""
        noted, self._noted = self._noted, []
        if not noted:
            return
        steps = np.concatenate([np.full(len(cut.lanes), cut.step, np.int64) for cut in noted])
        lanes = np.concatenate([cut.lanes for cut in noted])
        order = self._padded(len(lanes))
        place = torch.from_numpy(np.stack((steps, lanes))[:, order]).to(self._device)
        newest = torch.from_numpy(np.concatenate([cut.frames for cut in noted])[order])
        newest = newest.to(self._device)
        index = torch.from_numpy(order).to(self._device)
        parts = zip(*(cut.state for cut in noted), strict=True)
        state = tuple(torch.cat(part)[index] for part in parts)
        for first in range(0, len(order), self._batch):
            chosen = slice(first, first + self._batch)
            step, lane = place[:, chosen]
            before = stack_frames(store.frames, age, step, lane)
            obs = torch.cat((before[:, 1:], newest[chosen, None]), 1)
            memory = tuple(part[chosen] for part in state)
            never = torch.zeros_like(lane, dtype=torch.bool)
            with autocast(self._config, self._device):
                output = self._agent.act(obs, store.actions[step, lane], memory, never)
            store.final_value[step, lane] = output.value.float()

    def _padded(self, count: int) -> NDArray[np.int64]:
        """Which of `count` are valued, in order. On CUDA the last one is repeated until the last
        batch is full: every size of a batch that is new costs more than the batch."""
        missing = -count % self._batch if self._device.type == "cuda" else 0
        return np.minimum(np.arange(count + missing), count - 1)
