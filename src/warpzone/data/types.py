"""Rollouts: a `[T, B]` block of steps from B lanes, with what acting needed and produced."""

from typing import NamedTuple

import torch
from torch import Tensor

#: Memory carried from step to step: tensors whose first dimension is the lane; () for none.
State = tuple[Tensor, ...]


class Rollout(NamedTuple):
    """Time-major. A lane whose episode ends at step t shows the next episode's start at t + 1.

    Frames are stored once, not stacked: `stack - 1` rows of history, one row for each of the T
    steps, and one for the observation after the last step. Row `t + stack - 1` is what step t saw
    newest; `stacking` builds the stacks.
    """

    #: uint8 [T + stack, B, H, W].
    frames: Tensor
    #: int [T + 1, B]: steps since the episode began; 0 marks an episode's first step.
    age: Tensor
    #: int64 [T, B].
    actions: Tensor
    #: int64 [T + 1, B]: the action before each step; whatever it is where age is 0 is ignored.
    previous_actions: Tensor
    #: float32 [T, B, A]: of the policy that acted.
    logits: Tensor
    #: float32 [T, B]: log-probability with which the action was really chosen, so 0 where forced.
    log_prob: Tensor
    #: float32 [T, B]: of the network that acted.
    values: Tensor
    #: float32 [B]: its value of the observation after the last step.
    last_value: Tensor
    #: float32 [T, B]: its value of the episode's final observation; read where truncated.
    final_value: Tensor
    #: float32 [T, B].
    rewards: Tensor
    #: bool [T, B]: the episode ended here, nothing follows.
    terminated: Tensor
    #: bool [T, B]: the episode was cut here, its final observation still had a value.
    truncated: Tensor
    #: bool [T, B]: the action was not the policy's choice; the policy learns from it only if shown.
    forced: Tensor
    #: bool [T, B]: forced, by a way that a search found; the policy may imitate it.
    shown: Tensor
    #: Memory before step 0.
    state: State

    @property
    def length(self) -> int:
        return int(self.actions.shape[0])

    @property
    def lanes(self) -> int:
        return int(self.actions.shape[1])

    @property
    def stack(self) -> int:
        return int(self.frames.shape[0]) - self.length

    @property
    def starts(self) -> Tensor:
        """bool [T + 1, B]: where memory is empty."""
        return self.age == 0

    def select(self, lanes: Tensor) -> "Rollout":
        """The rollout of some lanes, in the order given."""
        values = {
            name: value.index_select(0 if name == "last_value" else 1, lanes)
            for name, value in zip(self._fields, self, strict=True)
            if isinstance(value, Tensor)
        }
        return Rollout(**values, state=tuple(part.index_select(0, lanes) for part in self.state))

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "Rollout":
        """The rollout on another device."""
        values = {
            name: value.to(device, non_blocking=non_blocking)
            for name, value in zip(self._fields, self, strict=True)
            if isinstance(value, Tensor)
        }
        state = tuple(part.to(device, non_blocking=non_blocking) for part in self.state)
        return Rollout(**values, state=state)
