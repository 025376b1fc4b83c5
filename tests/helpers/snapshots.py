"""Checkpoints of no run in particular, for tests of files."""

from typing import Any

import torch
from tiny_runs import tiny

from warpzone.run.checkpoints import Snapshot

WEIGHTS = {"encoder.weight": torch.arange(6.0).view(2, 3), "_orig_mod.heads.bias": torch.ones(2)}


def snapshot(update: int, **changes: Any) -> Snapshot:
    values: dict[str, Any] = {
        "config": tiny(stages="2-3,4-1"),
        "global_step": update * 32,
        "global_update": update,
        "reason": "normal",
        "weights": WEIGHTS,
        "state": {
            "counters": {"global_update": update},
            "moments": torch.full((3,), float(update)),
        },
        "best": {},
    }
    return Snapshot(**{**values, **changes})


def stem(update: int) -> str:
    return f"ppo_world2_stage3_{update:07d}"
