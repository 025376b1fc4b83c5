"""Optimiser steps as CUDA graphs: recorded once for each rollout store, then replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from warpzone.algo.optim import Updater
from warpzone.collect.actor import record


class Kept:
    """Copies of tensors that always lie in the same memory, which is where a graph reads them."""

    def __init__(self) -> None:
        self._tensors: dict[str, Tensor] = {}

    def put(self, values: Mapping[str, Tensor]) -> None:
        """Takes new values."""
        for name, value in values.items():
            if name in self._tensors:
                self._tensors[name].copy_(value)
            else:
                self._tensors[name] = value.clone()

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]


class OptimiserSteps:
    """Runs optimiser steps, as graphs if `enabled`."""

    def __init__(self, updater: Updater, counters: list[Tensor], *, enabled: bool) -> None:
        """counters: other tensors that a step changes."""
        self._updater = updater
        self._counters = counters
        self.enabled = enabled
        self._recorded: dict[tuple[int, str], Callable[[], None]] = {}

    def run(self, place: Tensor, step: Callable[[], None], name: str = "") -> None:
        """One step, or the part of it that has a name. All it reads must lie where it lay when
        `place` was seen first."""
        if not self.enabled:
            step()
            return
        key = place.data_ptr(), name
        if key not in self._recorded:
            self._recorded[key] = self._record(step)
        self._recorded[key]()

    def _record(self, step: Callable[[], None]) -> Callable[[], None]:
        """Recording runs steps for real; everything they change is put back. The optimiser makes
        its state with its first step, so that one comes before."""
        updater, counters = self._updater, self._counters
        states = updater.optimizer.state
        if not states:
            changed = [*updater.tensors(), *counters]
            before = [tensor.clone() for tensor in changed]
            step()
            with torch.no_grad():
                for tensor, value in zip(changed, before, strict=True):
                    tensor.copy_(value)
                for state in states.values():
                    for part in state.values():
                        part.zero_()
        return record(step, [*updater.tensors(), *counters])
