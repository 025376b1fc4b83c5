"""Schedules that adapt to the returns of the run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import AtLeast, Refusal


@dataclass(frozen=True)
class AdaptiveConfig:
    """Schedules that adapt to the returns of the run."""

    adaptive: bool = False
    """Scale entropy bonus and learning rate: up on a plateau, down while returns rise."""
    adaptive_window: Annotated[int, AtLeast(2)] = 40
    """Updates over which returns and clear rate are compared, one half with the other."""
    adaptive_cooldown: Annotated[int, AtLeast(0)] = 20
    """Updates between two changes."""
    adaptive_step: float = 1.25
    """Factor of one change."""
    adaptive_entropy_min: Annotated[float, AtLeast(0)] = 0.25
    """Smallest factor on the entropy bonus."""
    adaptive_entropy_max: float = 4.0
    """Largest factor on the entropy bonus."""
    adaptive_lr_min: Annotated[float, AtLeast(0)] = 0.25
    """Smallest factor on the learning rate."""
    adaptive_lr_max: float = 2.0
    """Largest factor on the learning rate."""


def refusals(config: AdaptiveConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        config.adaptive_step <= 1.0,
        f"--adaptive-step is a factor above 1, not {config.adaptive_step}",
    )
    for what in ("entropy", "lr"):
        low, high = getattr(config, f"adaptive_{what}_min"), getattr(config, f"adaptive_{what}_max")
        yield (
            not low <= 1.0 <= high,
            f"--adaptive-{what}-min {low:g} and --adaptive-{what}-max {high:g} must have 1, the "
            "schedule itself, between them",
        )
