"""Plug-ins for tests, found on the Python path."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from warpzone.model.spec import ModelSpec
from warpzone.observers.observer import Observer


class Flat(nn.Module):
    """One linear layer."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.layer = nn.Linear(spec.planes * spec.height * spec.width, spec.scaled_features)

    def forward(self, frames: Tensor) -> Tensor:
        features: Tensor = self.layer(frames.flatten(1).to(self.layer.weight.dtype) / 255)
        return features


class Halt(Observer):
    """Ends a run after its first update."""

    def updated(self, run: Any, row: dict[str, Any], collected: Any) -> None:
        run.stop("it has seen enough")
