"""When a run ends: whichever of these is reached first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import AtLeast, Lasts, Share


@dataclass(frozen=True)
class BudgetConfig:
    """When a run ends: whichever of these is reached first."""

    max_steps: Annotated[int, AtLeast(1)] = 5_000_000
    """Steps to train for, over all lanes."""
    max_time: Annotated[float, AtLeast(0), Lasts("minutes")] = 0.0
    """Stop after this many minutes; 0 is never."""
    max_cost_gpu_hours: Annotated[float, AtLeast(0), Lasts("hours")] = 0.0
    """Stop after this many hours of GPU time; 0 is never."""
    stop_at: Annotated[float, Share()] = 0.0
    """Stop as soon as an evaluation clears this share of its start delays (argmax); 0 is never."""
    stop_at_clears: Annotated[int, AtLeast(0)] = 0
    """The same as a number of start delays (31 a stage). Becomes --stop-at."""
