"""One turn of a group of lanes: the newest frames in, the next actions out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.collect.actor import FIRST, Actor, record
from warpzone.collect.lanes import LaneGroup
from warpzone.collect.store import Store
from warpzone.config import TrainConfig
from warpzone.data.stacking import wide

Pairs = tuple[tuple[Tensor, Tensor], ...]


class Turn:
    """Observes and decides for a group, and writes the results to one store. On CUDA a turn is
    recorded: one launch moves the frames to the device, decides, writes the store and brings the
    actions back, while the host does something else."""

    def __init__(self, config: TrainConfig, group: LaneGroup, actor: Actor, store: Store) -> None:
        self.group = group
        self.actor = actor
        self.store = store
        lanes, device = group.lanes, store.frames.device
        #: The group's part of what the store keeps on the host, as arrays.
        self.rewards = store.rewards.numpy()[:, lanes]
        self.terminated = store.terminated.numpy()[:, lanes]
        self.truncated = store.truncated.numpy()[:, lanes]
        self.age = store.age.numpy()[:, lanes]
        #: Lanes whose episode ended with the step before.
        self.ended = actor.starts.numpy()
        self._recorded: dict[str, Callable[[], None]] = {}
        self._recording = config.graphs and device.type == "cuda"
        self._length = config.rollout_steps
        self._last_value = store.last_value[lanes]
        pictures = wide(store.frames)[config.frame_stack - 1 :, lanes]
        self._seen: Pairs = (
            (pictures, wide(actor.frame)),
            (store.previous[:, lanes], actor.action),
        )
        self._decided: Pairs = (
            (store.actions[:, lanes], actor.action),
            (store.logits[:, lanes], actor.logits),
            (store.log_prob[:, lanes], actor.log_prob),
            (store.values[:, lanes], actor.value),
        )
        pinned = device.type == "cuda"
        #: The current step, and its actions, where the device reads and writes them.
        self._step = torch.zeros(1, dtype=torch.int64, pin_memory=pinned)
        self._actions = torch.zeros(group.count, dtype=torch.int64, pin_memory=pinned)
        self._row = torch.zeros(1, dtype=torch.int64, device=device)
        self._done = torch.cuda.Event() if pinned else None  # type: ignore[no-untyped-call]

    def take(self, step: int) -> None:
        """Decides step `step`; `chosen` waits for it."""
        self._run("take", step, self._take)

    def end(self) -> None:
        """Observes the result of the last step without a decision."""
        self._run("end", self._length, self._end)

    def chosen(self) -> NDArray[np.int64]:
        """The actions of the step taken. They change with the next one."""
        if self._done is not None:
            self._done.synchronize()
        actions: NDArray[np.int64] = self._actions.numpy()
        return actions

    def _run(self, name: str, step: int, work: Callable[[], None]) -> None:
        if self._done is not None:
            # Earlier work has already read the old index.
            self._done.synchronize()
        self._step[0] = step
        if not self._recording:
            work()
        else:
            if name not in self._recorded:
                tensors = self.actor.tensors()
                self._recorded[name] = record(work, tensors, priority=FIRST, draws=True)
            self._recorded[name]()
        if self._done is not None:
            self._done.record()

    @torch.no_grad()
    def _look(self) -> None:
        self._row.copy_(self._step, non_blocking=True)
        self.actor.frame.copy_(self.group.frames, non_blocking=True)
        self.actor.fresh.copy_(self.actor.starts, non_blocking=True)
        self._write(self._seen)

    @torch.no_grad()
    def _take(self) -> None:
        self._look()
        self.actor.choose()
        self._write(self._decided)
        self._actions.copy_(self.actor.action, non_blocking=True)

    @torch.no_grad()
    def _end(self) -> None:
        self._look()
        self._last_value.copy_(self.actor.peek())

    def _write(self, pairs: Pairs) -> None:
        """The row of this step. A recorded turn reads its index from memory."""
        for place, value in pairs:
            if self._done is None:
                place[int(self._step)] = value
            else:
                place.index_copy_(0, self._row, value[None])
