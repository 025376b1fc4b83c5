"""The order in which a rollout is learned from."""

from __future__ import annotations

import torch
from torch import Tensor

from warpzone.collect.streams import generator


class Orders:
    """Random orders of a rollout's parts, a new one for each pass over it."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.random = generator(seed, "order")
        self._device = device
        self._pinned: list[Tensor] = []

    def draw(self, epoch: int, total: int) -> Tensor:
        """The order of pass `epoch`. From pinned memory it gets to a GPU without a wait for the
        passes before it; that memory is free again when the update is over."""
        order = torch.randperm(total, generator=self.random)
        if self._device.type != "cuda":
            return order
        if epoch == len(self._pinned):
            self._pinned.append(torch.empty(total, dtype=torch.int64, pin_memory=True))
        return self._pinned[epoch].copy_(order).to(self._device, non_blocking=True)
