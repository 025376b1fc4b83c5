"""The optimiser: AdamW, the clip by global norm, and a guard against numbers that are not finite.

Nothing here waits for the device while learning. Whether an optimiser step is skipped is decided on
the device: the fused step takes a flag and leaves weights, moments and step counts alone where it
is set. Only `report`, which reads the counters, waits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

#: The scale of half-precision losses: doubled after this many good steps, halved after a bad one.
SCALE_PATIENCE = 1000


@dataclass(frozen=True)
class StepReport:
    """Counters of the optimiser steps so far."""

    #: Optimiser steps asked for.
    steps: int
    #: Skipped because the loss or a gradient was not finite.
    skipped: int
    #: How many of the latest were skipped for that, without a good one between.
    skipped_in_a_row: int
    #: Left out because the caller vetoed them.
    vetoed: int
    #: Gradient norm of the latest optimiser step, before clipping.
    grad_norm: float
    #: The scale of the loss; 1 unless half precision is in use.
    loss_scale: float


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Matrices and kernels decay; biases, norms, embeddings and the scale of noise do not."""
    embedded = {id(layer.weight) for layer in module.modules() if isinstance(layer, nn.Embedding)}
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            continue
        plain = parameter.ndim < 2 or id(parameter) in embedded or name.endswith("_sigma")
        (kept if plain else decayed).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def make_optimizer(
    module: nn.Module,
    *,
    learning_rate: float,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-5,
) -> torch.optim.AdamW:
    """AdamW, fused: one kernel for all weights on CUDA, and the form that can skip by a flag."""
    groups = parameter_groups(module, weight_decay)
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=eps, fused=True)


def set_learning_rate(optimizer: torch.optim.Optimizer, learning_rate: float) -> None:
    """In place where the rate is a tensor, so that a captured step sees it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(learning_rate)
        else:
            group["lr"] = learning_rate


class Updater:
    """Backward passes and optimiser steps of one network.

    for each minibatch: `backward(loss / pieces)`, as often as gradients accumulate; then `step()`.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        *,
        max_norm: float | None = 0.5,
        loss_scale: float | None = None,
    ) -> None:
        """loss_scale: where to begin with float16 (8192 is a good start); None for no scaling."""
        if max_norm is not None and max_norm <= 0:
            raise ValueError(f"the largest gradient norm must be above 0, and is {max_norm}")
        if not optimizer.defaults.get("fused"):
            raise ValueError("the updater needs a fused optimiser: only that can skip by a flag")
        self.optimizer = optimizer
        self.max_norm = max_norm
        self.scales_loss = loss_scale is not None
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        device = self.parameters[0].device
        self._scale = torch.full((), loss_scale or 1.0, device=device)
        self._good = torch.zeros((), dtype=torch.int64, device=device)
        #: Whether a loss of the coming step was not finite.
        self.bad_loss = torch.zeros((), dtype=torch.bool, device=device)
        self._norm = torch.zeros((), device=device)
        #: Optimiser steps, skipped, skipped in a row, vetoed.
        self._counts = torch.zeros(4, dtype=torch.int64, device=device)

    def backward(self, loss: Tensor) -> None:
        """Adds the loss's gradient to what is there."""
        self.bad_loss |= torch.logical_not(loss.detach().isfinite())
        torch.autograd.backward(loss * self._scale if self.scales_loss else loss)

    @torch.no_grad()
    def step(self, veto: Tensor | None = None) -> Tensor:
        """One optimiser step from the accumulated gradients, which are then freed.

        veto: 0-dim bool; where true, the step is left out (an early stop by KL, say). Returns
        the gradient's norm before clipping, 0-dim, on the device.
        """
        grads = [p.grad for p in self.parameters if p.grad is not None]
        if not grads:
            raise ValueError("there is no gradient for an optimiser step; call backward first")
        norm = torch.nn.utils.get_total_norm(grads) / self._scale
        bad = torch.logical_not(norm.isfinite()) | self.bad_loss
        factor = 1.0 / self._scale
        if self.max_norm is not None:
            factor = factor * (self.max_norm / (norm + 1e-6)).clamp(max=1.0)
        torch._foreach_mul_(grads, factor)
        vetoed = torch.zeros_like(bad) if veto is None else veto & torch.logical_not(bad)
        self.optimizer.found_inf = (bad | vetoed).float()  # type: ignore[attr-defined]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self._count(bad, vetoed)
        self.bad_loss.zero_()
        self._norm.copy_(norm)
        return norm

    def tensors(self) -> list[Tensor]:
        """Everything a step changes: what a caller that records steps as a graph must put back."""
        state = [value for values in self.optimizer.state.values() for value in values.values()]
        moments = [value for value in state if isinstance(value, Tensor)]
        own = [self._scale, self._good, self.bad_loss, self._norm, self._counts]
        return [*(parameter.data for parameter in self.parameters), *moments, *own]

    def report(self) -> StepReport:
        """The counters so far; waits for the device."""
        packed = torch.cat([self._counts.double(), self._norm[None].double(), self._scale[None]])
        steps, skipped, in_a_row, vetoed, norm, scale = packed.tolist()
        return StepReport(int(steps), int(skipped), int(in_a_row), int(vetoed), norm, scale)

    def state_dict(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer.state_dict(),
            "counts": self._counts.clone(),
            "scale": self._scale.clone(),
            "good": self._good.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        saved = state["optimizer"]["state"]
        for index, parameter in enumerate(self.parameters):
            for name, value in saved.get(index, {}).items():
                if name != "step" and value.shape != parameter.shape:
                    raise ValueError("the saved optimiser belongs to another network")
        # Rates and flags belong to the configuration and the device, not to what was saved.
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved, "param_groups": groups})
        self._counts.copy_(state["counts"])
        self._good.copy_(state["good"])
        if self.scales_loss:
            self._scale.copy_(state["scale"])

    def _count(self, bad: Tensor, vetoed: Tensor) -> None:
        skipped = bad.long()
        in_a_row = (self._counts[2] + skipped) * skipped
        steps, before, _, left_out = self._counts.unbind()
        self._counts.copy_(
            torch.stack([steps + 1, before + skipped, in_a_row, left_out + vetoed.long()])
        )
        if self.scales_loss:
            self._good.copy_((self._good + 1) * (1 - skipped))
            patient = self._good >= SCALE_PATIENCE
            self._scale.mul_(torch.where(bad, 0.5, torch.where(patient, 2.0, 1.0)))
            self._good.mul_(torch.logical_not(patient))
