"""The engine's random stream (SplitMix64), so that a seed draws the same on every back-end."""

from collections.abc import Sequence

from warpzone.env.backends.interface import WHOLE_GAME

_MASK = 2**64 - 1


class Rng:
    """One word of state; any seed is a good one."""

    def __init__(self, seed: int = 0) -> None:
        self.state = seed & _MASK

    def next(self) -> int:
        """64 random bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, count: int) -> int:
        """0..count-1."""
        return (self.next() >> 32) * count >> 32

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.fraction() < probability

    def fraction(self) -> float:
        """In [0, 1)."""
        return (self.next() >> 11) * 2.0**-53


def draw_stage(stages: Sequence[int], weights: Sequence[float], rng: Rng) -> int:
    """One of a lane's stages; an empty list is the whole game, and draws nothing."""
    if not stages:
        return WHOLE_GAME
    chances = [weights[stage] for stage in stages] if weights else []
    if sum(chances) <= 0:
        return stages[rng.below(len(stages))]
    left = rng.fraction() * sum(chances)
    last = stages[0]
    for stage, chance in zip(stages, chances, strict=True):
        if chance <= 0:
            continue
        last = stage
        left -= chance
        if left < 0:
            break
    return last
