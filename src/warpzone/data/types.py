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
    #: bool [T, B]: the action was not the policy's choice; the policy does not learn from it.
    forced: Tensor
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


def check(rollout: Rollout) -> None:
    """Raises ValueError with one sentence if shapes or types do not fit together."""
    steps, lanes = rollout.length, rollout.lanes
    if rollout.stack < 1:
        raise ValueError(
            f"a rollout of {steps} steps needs at least {steps + 1} frames, "
            f"and has {rollout.frames.shape[0]}"
        )
    flat = (steps, lanes)
    shapes = {
        "frames": (steps + rollout.stack, lanes, *rollout.frames.shape[2:]),
        "age": (steps + 1, lanes),
        "previous_actions": (steps + 1, lanes),
        "logits": (*flat, *rollout.logits.shape[2:]),
        "last_value": (lanes,),
    }
    for name, value in zip(rollout._fields, rollout, strict=True):
        if isinstance(value, Tensor):
            expected = shapes.get(name, flat)
            if tuple(value.shape) != expected:
                raise ValueError(
                    f"a rollout's {name} must have the shape {expected}, not {tuple(value.shape)}"
                )
    for part in rollout.state:
        if part.shape[0] != lanes:
            raise ValueError(
                f"a rollout of {lanes} lanes has a memory state of {part.shape[0]} lanes"
            )
    kinds = {"frames": torch.uint8, "actions": torch.int64, "previous_actions": torch.int64}
    kinds |= dict.fromkeys(("terminated", "truncated", "forced"), torch.bool)
    for name, kind in kinds.items():
        if getattr(rollout, name).dtype != kind:
            raise ValueError(
                f"a rollout's {name} must be {kind}, not {getattr(rollout, name).dtype}"
            )
