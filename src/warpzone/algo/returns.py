"""Return estimators over `[T, B]`: GAE(lambda) and V-trace.

Both are y_t = x_t + a_t * y_{t+1}, solved for all t at once in log2(T) doublings.

What follows a step is the next value, except where the episode ended there: after a termination
nothing follows, after a truncation the value of the final observation does, and neither lets the
next episode's errors flow back.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from warpzone.data.types import Rollout


class Steps(NamedTuple):
    """What an estimator reads of a rollout; every tensor is [T, B] but `last_value`, [B]."""

    rewards: Tensor
    values: Tensor
    last_value: Tensor
    final_value: Tensor
    terminated: Tensor
    truncated: Tensor


def steps_of(rollout: Rollout) -> Steps:
    """With the values of the network that played."""
    return Steps(
        rewards=rollout.rewards,
        values=rollout.values,
        last_value=rollout.last_value,
        final_value=rollout.final_value,
        terminated=rollout.terminated,
        truncated=rollout.truncated,
    )


class Returns(NamedTuple):
    """Targets for the value head and advantages for the policy, [T, B], without gradient."""

    targets: Tensor
    advantages: Tensor


@torch.no_grad()
def gae(steps: Steps, *, gamma: float | Tensor, lam: float) -> Returns:
    """Schulman et al. 2016; `targets` are the lambda-returns.

    gamma: a number, or a tensor that fits [T, B].
    """
    following = next_values(steps)
    errors = steps.rewards + gamma * following - steps.values
    advantages = reverse_scan(errors, gamma * lam * _running(steps))
    return Returns(steps.values + advantages, advantages)


@torch.no_grad()
def vtrace(
    steps: Steps,
    log_rho: Tensor,
    *,
    gamma: float | Tensor,
    lam: float = 1.0,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    weighed: bool = True,
) -> Returns:
    """Espeholt et al. 2018. log_rho = log pi(a|x) - log mu(a|x), [T, B].

    With lambda < 1 the advantage bootstraps from the same mixture as the trace, so that on-policy
    targets and advantages are those of GAE(lambda). Advantages that are not `weighed` lack their
    own rho, for a loss that has it.
    """
    rho = log_rho.exp()
    clipped_rho = rho.clamp(max=rho_bar)
    running = _running(steps)
    following = next_values(steps)
    errors = clipped_rho * (steps.rewards + gamma * following - steps.values)
    corrections = reverse_scan(errors, gamma * lam * running * rho.clamp(max=c_bar))
    targets = steps.values + corrections
    mixed = following + lam * running * _shifted(corrections)
    advantages = steps.rewards + gamma * mixed - steps.values
    return Returns(targets, clipped_rho * advantages if weighed else advantages)


def next_values(steps: Steps) -> Tensor:
    """[T, B]: the value of what follows each step."""
    following = torch.cat([steps.values[1:], steps.last_value[None]])
    following = torch.where(steps.truncated, steps.final_value, following)
    return torch.where(steps.terminated, torch.zeros_like(following), following)


def reverse_scan(x: Tensor, decay: Tensor) -> Tensor:
    """y with y_t = x_t + decay_t * y_{t+1}, and y_T = 0 after the end."""
    length = x.shape[0]
    span = 1
    # After each round (x, decay)_t stands for the `span` steps from t on.
    while span < length:
        joined = x[:-span] + decay[:-span] * x[span:]
        x = torch.cat([joined, x[-span:]])
        # The last `span` rows reach the end; there is nothing left to multiply them with.
        decay = torch.cat([decay[:-span] * decay[span:], decay[-span:]])
        span *= 2
    return x


def _running(steps: Steps) -> Tensor:
    """1.0 where the next step belongs to the same episode, 0.0 where it does not."""
    return torch.logical_not(steps.terminated | steps.truncated).to(steps.rewards.dtype)


def _shifted(x: Tensor) -> Tensor:
    """x_{t+1}; zero after the end."""
    return torch.cat([x[1:], torch.zeros_like(x[:1])])
