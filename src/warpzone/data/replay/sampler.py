"""Which segments to replay: drawn in proportion to their weights, with replacement.

Two samplers draw from the same distribution. The tree's cost grows with the logarithm of the
capacity and runs on the CPU; the scan's grows with the capacity, but all of it stays on the device,
where it needs no wait. Draws are stratified: draw i comes from the i-th of n equal slices of the
total weight, which keeps every segment's expected share and lowers the variance.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from warpzone.data.replay.sum_tree import SumTree

#: Consecutive slow draws after which the device sampler is given up.
PATIENCE = 3


class TreeSampler:
    """Draws by a sum tree on the CPU. Of a slot whose weight is set twice in one call the larger
    one stays; new slots get the largest ever set, so that each is drawn soon."""

    def __init__(self, capacity: int, seed: int) -> None:
        self.device = torch.device("cpu")
        self._tree = SumTree(capacity)
        self._largest = 1.0
        self._generator = torch.Generator().manual_seed(seed)

    def set(self, slots: Tensor, weights: Tensor) -> None:
        values = weights.detach().cpu().double().numpy()
        if values.size:
            self._tree.set(slots.cpu().numpy(), values)
            self._largest = max(self._largest, float(values.max()))

    def set_new(self, slots: Tensor) -> None:
        self._tree.set(slots.cpu().numpy(), np.full(slots.shape[0], self._largest))

    def get(self, slots: Tensor) -> Tensor:
        return torch.from_numpy(self._tree.leaves[slots.cpu().numpy()])

    def sample(self, count: int, size: int) -> tuple[Tensor, Tensor]:
        drawn = torch.rand(count, generator=self._generator, dtype=torch.float64)
        sums = (torch.arange(count) + drawn) * (self._tree.total / count)
        slots = self._tree.find(sums.numpy())
        probability = self._tree.leaves[slots] / self._tree.total
        return torch.from_numpy(slots), torch.from_numpy(probability)

    def state_dict(self) -> dict[str, Any]:
        return {
            "weights": torch.from_numpy(self._tree.leaves.copy()),
            "largest": torch.tensor(self._largest, dtype=torch.float64),
            "generator": self._generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.take_weights(state)
        self._generator.set_state(state["generator"])

    def take_weights(self, state: dict[str, Any]) -> None:
        """The weights of a saved sampler of either kind, without its random numbers."""
        weights = state["weights"].double().numpy()
        self._tree.set(np.arange(weights.size), weights)
        self._largest = float(state["largest"])


class ScanSampler:
    """Draws by prefix sum and binary search, all on one device; weights as in `TreeSampler`."""

    def __init__(self, capacity: int, seed: int, device: torch.device | str) -> None:
        self.device = torch.device(device)
        self._weights = torch.zeros(capacity, device=self.device)
        self._largest = torch.ones((), device=self.device)
        self._generator = torch.Generator(self.device).manual_seed(seed)

    def set(self, slots: Tensor, weights: Tensor) -> None:
        values = weights.detach().to(self.device, torch.float32)
        # amax does not depend on the order, so repeated slots give one answer on any device.
        self._weights.scatter_reduce_(
            0, slots.to(self.device), values, reduce="amax", include_self=False
        )
        self._largest = torch.cat([values, self._largest[None]]).amax()

    def set_new(self, slots: Tensor) -> None:
        self._weights.index_copy_(0, slots.to(self.device), self._largest.expand(slots.shape[0]))

    def get(self, slots: Tensor) -> Tensor:
        return self._weights[slots.to(self.device)]

    def sample(self, count: int, size: int) -> tuple[Tensor, Tensor]:
        weights = self._weights[:size]
        # In float64: in float32 a small weight after a large sum would never be drawn.
        prefix = weights.cumsum(0, dtype=torch.float64)
        total = prefix[-1]
        drawn = torch.rand(
            count, generator=self._generator, dtype=torch.float64, device=self.device
        )
        sums = (torch.arange(count, device=self.device) + drawn) * (total / count)
        slots = torch.searchsorted(prefix, sums, right=True).clamp(max=size - 1)
        return slots, weights[slots] / total

    def state_dict(self) -> dict[str, Any]:
        return {
            "weights": self._weights.to("cpu", copy=True),
            "largest": self._largest.to("cpu", copy=True),
            "generator": self._generator.get_state(),
        }

    def take_weights(self, state: dict[str, Any]) -> None:
        """The weights of a saved sampler of either kind, without its random numbers."""
        self._weights.copy_(state["weights"])
        self._largest = state["largest"].to(self.device, torch.float32)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.take_weights(state)
        # The state of another kind of device does not fit; draws then continue with this
        # generator's own.
        if state["generator"].shape == self._generator.get_state().shape:
            self._generator.set_state(state["generator"])


@dataclass
class SlowGuard:
    """Says when the device sampler is not worth it: several slow draws, one after the other."""

    #: A draw slower than this is slow; None never gives up.
    limit_ms: float | None
    slow: int = 0

    def record(self, milliseconds: float) -> bool:
        """Takes one draw's time; True once the limit was passed PATIENCE times in a row."""
        if self.limit_ms is None:
            return False
        self.slow = self.slow + 1 if milliseconds > self.limit_ms else 0
        return self.slow >= PATIENCE


@dataclass(frozen=True)
class BetaSchedule:
    """The importance exponent, linear in the run's progress: corrections matter most at its end."""

    start: float = 0.4
    end: float = 1.0

    def __post_init__(self) -> None:
        for value in (self.start, self.end):
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"beta must be in [0, 1], and is {value}")

    def __call__(self, progress: float) -> float:
        """beta at a share of the run in [0, 1]."""
        progress = min(max(progress, 0.0), 1.0)
        return (1.0 - progress) * self.start + progress * self.end


def importance_weights(probability: Tensor, size: int, beta: float) -> Tensor:
    """(size * P(i)) ** -beta over the largest of the batch, float32 (Schaul et al. 2016)."""
    weights = (probability.double() * size) ** -beta
    return (weights / weights.amax()).float()
