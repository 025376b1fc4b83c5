"""What a step is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class RewardConfig:
    """What a step is worth."""

    reward: Literal["progress", "gym"] = "progress"
    """progress (new ground, time, flag, death) or gym (as gym-super-mario-bros)."""
    reward_distance_weight: float = 0.1
    """Reward for each new pixel."""
    reward_step: float = -0.04
    """Reward for each step."""
    reward_flag: float = 5.0
    """Reward for the flag."""
    reward_death: float = -2.5
    """Reward for dying."""
    reward_clip: float = 15.0
    """A step's reward is clipped to plus or minus this; 0 leaves it alone."""
