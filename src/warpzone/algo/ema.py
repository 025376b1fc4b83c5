"""An exponential moving average of a network's weights, for evaluation."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


class Ema:
    """Follows a network. Averages young in a run are short, so the random start is forgotten.

    After n updates the decay is min(decay, (1 + n) / (10 + n)). Buffers and whole numbers are
    copied, not averaged.
    """

    def __init__(self, module: nn.Module, decay: float = 0.999) -> None:
        if not 0.0 <= decay < 1.0:
            raise ValueError(f"an average's decay must be in [0, 1), and is {decay}")
        self.decay = decay
        self.updates = 0
        self._averages = {name: value.detach().clone() for name, value in _tensors(module).items()}
        self._averaged = [name for name, _ in module.named_parameters()]

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """One step towards the network."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        now = _tensors(module)
        torch._foreach_lerp_(
            [self._averages[name] for name in self._averaged],
            [now[name] for name in self._averaged],
            1.0 - decay,
        )
        for name in now.keys() - set(self._averaged):
            self._averages[name].copy_(now[name])

    @torch.no_grad()
    def copy_to(self, module: nn.Module) -> None:
        """Writes the averages into a network of the same shape."""
        for name, value in _tensors(module).items():
            value.copy_(self._averages[name])

    def state_dict(self) -> dict[str, Any]:
        return {"updates": self.updates, "averages": dict(self._averages)}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        averages = state["averages"]
        if averages.keys() != self._averages.keys():
            different = sorted(averages.keys() ^ self._averages.keys())
            raise ValueError(f"the saved average has another network: {', '.join(different)}")
        self.updates = int(state["updates"])
        for name, value in self._averages.items():
            value.copy_(averages[name])


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers without gradients, by name, the unsaved buffers left out."""
    return module.state_dict()
