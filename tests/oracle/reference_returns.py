"""GAE and V-trace as the papers write them: sums and products over time, one lane, float64.

Schulman et al. 2016, eq. 16; Espeholt et al. 2018, eq. 1. x_{s+1} after the last step, or after a
truncation, is the observation whose value is given; after a termination it has the value 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lane:
    """T steps of one lane."""

    rewards: Floats
    values: Floats
    last_value: float
    final_value: Floats
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.rewards)

    def next_value(self, t: int) -> float:
        """V(x_{t+1})."""
        if self.terminated[t]:
            return 0.0
        if self.truncated[t]:
            return float(self.final_value[t])
        return float(self.values[t + 1]) if t + 1 < len(self) else self.last_value

    def horizon(self, s: int) -> int:
        """The first step after s's episode, or T."""
        for t in range(s, len(self)):
            if self.terminated[t] or self.truncated[t]:
                return t + 1
        return len(self)


def gae(lane: Lane, gamma: float, lam: float) -> Floats:
    """A_s = sum over l of (gamma lambda)^l delta_{s+l}."""
    result = np.zeros(len(lane))
    for s in range(len(lane)):
        for t in range(s, lane.horizon(s)):
            delta = lane.rewards[t] + gamma * lane.next_value(t) - lane.values[t]
            result[s] += (gamma * lam) ** (t - s) * delta
    return result


def n_step_return(lane: Lane, gamma: float) -> Floats:
    """sum over k of gamma^k r_{s+k}, plus the discounted value of what follows the last."""
    result = np.zeros(len(lane))
    for s in range(len(lane)):
        end = lane.horizon(s)
        for t in range(s, end):
            result[s] += gamma ** (t - s) * lane.rewards[t]
        result[s] += gamma ** (end - s) * lane.next_value(end - 1)
    return result


def vtrace(
    lane: Lane, log_rho: Floats, gamma: float, lam: float, rho_bar: float, c_bar: float
) -> tuple[Floats, Floats]:
    """v_s, and rho_s (r_s + gamma q_{s+1} - V(x_s)) with q = lambda v + (1 - lambda) V."""
    ratio = np.exp(log_rho)
    targets = np.zeros(len(lane))
    for s in range(len(lane)):
        targets[s] = lane.values[s]
        for t in range(s, lane.horizon(s)):
            trace = 1.0
            for i in range(s, t):
                trace *= lam * min(c_bar, ratio[i])
            delta = lane.rewards[t] + gamma * lane.next_value(t) - lane.values[t]
            targets[s] += gamma ** (t - s) * trace * min(rho_bar, ratio[t]) * delta
    advantages = np.zeros(len(lane))
    for s in range(len(lane)):
        following = lane.next_value(s)
        if lane.horizon(s) > s + 1:
            following = lam * targets[s + 1] + (1.0 - lam) * lane.values[s + 1]
        error = lane.rewards[s] + gamma * following - lane.values[s]
        advantages[s] = min(rho_bar, ratio[s]) * error
    return targets, advantages
