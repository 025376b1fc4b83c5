"""Whether a rollout is one."""

import torch
from torch import Tensor

from warpzone.data.types import Rollout


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
