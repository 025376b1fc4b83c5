"""The gradients of a network in one block of memory, which ranks add up with one exchange."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Bucket:
    """All gradients one after the other, and some numbers behind them. It always lies in the same
    memory, which is where recorded steps write it and read it."""

    def __init__(self, parameters: Sequence[nn.Parameter], numbers: int) -> None:
        self._parameters = list(parameters)
        sizes = [parameter.numel() for parameter in self._parameters]
        device = self._parameters[0].device
        #: What ranks add up.
        self.flat = torch.zeros(sum(sizes) + numbers, device=device)
        parts = torch.split(self.flat, [*sizes, numbers])
        shaped = zip(parts[:-1], self._parameters, strict=True)
        self._views = [part.view_as(parameter) for part, parameter in shaped]
        self.numbers = parts[-1]

    @torch.no_grad()
    def take(self, numbers: Sequence[Tensor]) -> None:
        """Moves the gradients, and numbers beside them, into the block. A rank without a part of
        the minibatch has no gradients, and adds none."""
        pairs = list(zip(self._views, self._parameters, strict=True))
        for view in (view for view, parameter in pairs if parameter.grad is None):
            view.zero_()
        there = [(view, parameter.grad) for view, parameter in pairs if parameter.grad is not None]
        if there:
            torch._foreach_copy_([view for view, _ in there], [grad for _, grad in there])
        for parameter in self._parameters:
            parameter.grad = None
        self.numbers.copy_(torch.stack([number.float() for number in numbers]))

    def give(self) -> None:
        """Hands the sums to the optimiser as gradients."""
        for view, parameter in zip(self._views, self._parameters, strict=True):
            parameter.grad = view
