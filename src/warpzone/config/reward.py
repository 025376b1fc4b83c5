"""Rewards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import AtLeast, Refusal, flag
from warpzone.env.backends.select import is_factory
from warpzone.env.rewards import REWARDS


@dataclass(frozen=True)
class RewardConfig:
    """Rewards."""

    reward: str = "progress"
    """progress (new ground, time, flag, death), gym (as gym-super-mario-bros), shaped (both), or
    a function of your own, as module:function."""
    reward_distance_weight: float = 0.1
    """Reward for each new pixel."""
    reward_step: float = -0.04
    """Reward for each step."""
    reward_flag: float = 5.0
    """Reward for the flag."""
    reward_death: float = -2.5
    """Reward for dying."""
    reward_clip: Annotated[float, AtLeast(0)] = 15.0
    """A step's reward is clipped to plus or minus this; 0 leaves it alone."""
    reward_distance_weight_final: float | None = None
    """Reward for each new pixel once it is annealed; not given leaves it alone."""
    reward_distance_weight_anneal_steps: Annotated[int, AtLeast(0)] = 0
    """Steps of the run (over all lanes) until then, in a straight line; 0 is at once."""
    reward_score_weight: float = 0.0
    """Reward for each point of the score."""
    reward_scale_start: float = 1.0
    """Multiplies all rewards but flag, death and milestones."""
    reward_scale_final: float | None = None
    """The scale once it is annealed; not given leaves it alone."""
    reward_scale_anneal_steps: Annotated[int, AtLeast(0)] = 0
    """Steps of the run until then."""
    death_penalty_start: float | None = None
    """Reward for dying at the start, instead of reward_death."""
    death_penalty_final: float | None = None
    """Reward for dying once it is annealed; not given leaves it alone."""
    death_penalty_anneal_steps: Annotated[int, AtLeast(0)] = 0
    """Steps of the run until then."""
    milestone_interval: Annotated[int, AtLeast(0)] = 0
    """A milestone is passed after each of this many pixels of new ground; 0 is off."""
    milestone_bonus: float = 0.0
    """Reward for each milestone."""

    @property
    def own_reward(self) -> str:
        """The function that makes rewards, as `module:function`; empty without one."""
        return self.reward if self.reward not in REWARDS else ""

    @property
    def base_reward(self) -> str:
        """What the engine works out: a function of the user's own is given the first kind."""
        return REWARDS[0] if self.own_reward else self.reward


def refusals(config: RewardConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        bool(config.own_reward) and not is_factory(config.own_reward),
        f"--reward must be one of {', '.join(REWARDS)}, or module:function, not {config.reward!r}",
    )
    for name in ("reward_distance_weight", "reward_scale", "death_penalty"):
        steps, final = f"{name}_anneal_steps", f"{name}_final"
        yield (
            getattr(config, steps) > 0 and getattr(config, final) is None,
            f"{flag(steps)} needs {flag(final)}, where to anneal to",
        )
    for name in ("death_penalty_start", "death_penalty_final"):
        value = getattr(config, name)
        yield (
            value is not None and value > 0,
            f"{flag(name)} is added to the reward, so a penalty is negative, not {value}",
        )
    yield (
        (config.milestone_interval > 0) != (config.milestone_bonus != 0.0),
        "--milestone-interval and --milestone-bonus need each other",
    )
    shaped = (
        config.reward_score_weight != 0.0
        or config.reward_scale_start != 1.0
        or config.reward_scale_final is not None
        or config.milestone_interval > 0
        or config.reward_distance_weight_final is not None
        or config.death_penalty_start is not None
        or config.death_penalty_final is not None
    )
    yield (
        config.reward == "gym" and shaped,
        "--reward gym is never shaped; use --reward shaped, which adds shaping to it",
    )
