"""Rewards: the presets the engine computes, and their weights."""

from dataclasses import astuple, dataclass
from math import isfinite

#: `progress` pays for new ground; `gym` is the reward of gym-super-mario-bros 7.4.0.
REWARDS = ("progress", "gym")


@dataclass(frozen=True)
class RewardWeights:
    """Weights of the `progress` reward, in the order the engine takes them."""

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

    def __post_init__(self) -> None:
        for name, value in self.__dict__.items():
            if not isinstance(value, int | float) or not isfinite(value):
                raise ValueError(
                    f"the reward weight {name!r} must be a finite number, not {value!r}"
                )
        if self.clip < 0:
            raise ValueError(f"the reward weight 'clip' must not be negative, and is {self.clip}")

    def as_tuple(self) -> tuple[float, ...]:
        """The weights as the engine takes them."""
        return tuple(float(value) for value in astuple(self))
