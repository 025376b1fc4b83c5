"""Rewards: the presets the engine computes, their weights, and how weights change over a run."""

from dataclasses import dataclass, fields, replace
from math import isfinite
from numbers import Real
from typing import Any

from warpzone import _engine

#: `progress` pays for new ground; `gym` is the reward of gym-super-mario-bros 7.4.0; `shaped` is
#: the sum of both.
REWARDS = ("progress", "gym", "shaped")

#: What the engine's sums of shaping are called, in its order, in metrics and diagnostics.
SHAPING_FIELDS = (
    "env_distance_delta_sum",
    "env_shaping_raw_sum",
    "env_shaping_scaled_sum",
    "env_shaping_parse_fail",
    "env_shaping_steps",
    "env_shaping_last_dx",
    "env_shaping_last_raw",
    "env_shaping_last_scaled",
)


@dataclass(frozen=True)
class RewardWeights:
    """Weights of the `progress` and `shaped` rewards, named as the engine names them:

    `scale * (pixel * new ground + score * points + step [+ gym]) + flag + death + milestones`.
    """

    #: For each pixel beyond the furthest x reached so far in the stage.
    pixel: float = 0.1
    #: For each step, whatever happens.
    step: float = -0.01
    #: For reaching the flag or the axe.
    flag: float = 5.0
    #: For dying.
    death: float = -5.0
    #: A step's reward is clipped to [-clip, clip]; 0 leaves it alone.
    clip: float = 15.0
    #: For each point.
    score: float = 0.0
    #: Multiplies all but flag, death and milestones.
    scale: float = 1.0
    #: For each `milestone_interval` pixels of new ground in an episode.
    milestone: float = 0.0
    #: 0: no milestones.
    milestone_interval: int = 0

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            if not isinstance(value, Real) or not isfinite(value):
                raise ValueError(
                    f"the reward weight {name!r} must be a finite number, not {value!r}"
                )
        for name in ("clip", "milestone_interval"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"the reward weight {name!r} must not be negative, and is {getattr(self, name)}"
                )

    def to_engine(self) -> _engine.RewardWeights:
        """The weights as the engine takes them."""
        values: dict[str, Any] = {term.name: getattr(self, term.name) for term in fields(self)}
        # Any real number will do here; the engine counts whole pixels.
        values["milestone_interval"] = int(self.milestone_interval)
        return _engine.RewardWeights(**values)


@dataclass(frozen=True)
class Annealed:
    """A number that goes in a straight line from `start` to `final` over `steps` global steps."""

    start: float
    final: float | None = None
    steps: int = 0

    def at(self, global_step: int) -> float:
        """Its value after so many steps of the whole run."""
        if self.final is None:
            return self.start
        done = min(1.0, global_step / self.steps) if self.steps > 0 else 1.0
        return self.start + (self.final - self.start) * done


@dataclass(frozen=True)
class RewardSchedule:
    """Weights as a function of the run's global step, so that resuming changes nothing."""

    weights: RewardWeights
    pixel: Annealed
    scale: Annealed
    death: Annealed

    def at(self, global_step: int) -> RewardWeights:
        """The weights of a rollout that starts after so many steps."""
        return replace(
            self.weights,
            pixel=self.pixel.at(global_step),
            scale=self.scale.at(global_step),
            death=self.death.at(global_step),
        )
