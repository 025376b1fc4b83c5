"""Schedules that react to how the run goes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AdaptiveConfig:
    """Schedules that react to how the run goes."""

    adaptive: bool = False
    """Scale entropy bonus and learning rate: up on a plateau, down while returns rise."""
    adaptive_window: int = 40
    """Updates over which returns and clear rate are compared, one half with the other."""
    adaptive_cooldown: int = 20
    """Updates between two changes."""
    adaptive_step: float = 1.25
    """Factor of one change."""
    adaptive_entropy_min: float = 0.25
    """Smallest factor on the entropy bonus."""
    adaptive_entropy_max: float = 4.0
    """Largest factor on the entropy bonus."""
    adaptive_lr_min: float = 0.25
    """Smallest factor on the learning rate."""
    adaptive_lr_max: float = 2.0
    """Largest factor on the learning rate."""
