"""Losses, each a mean over the steps that count.

`mask` says which steps count (bool): forced steps do not teach the policy, burn-in teaches nothing.
`weights` are the importance weights of replayed segments; they scale terms, not the mean's divisor.
Both broadcast against `[T, B]` or a flat minibatch, and None means all ones.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

VALUE_LOSSES = ("mse", "huber")


class PolicyLoss(NamedTuple):
    """A policy loss and how far the policy moved; all 0-dim, only `loss` has a gradient."""

    loss: Tensor
    #: Schulman's estimator of KL(old || new): mean of (ratio - 1) - log ratio, never negative.
    approx_kl: Tensor
    #: Share of the steps whose ratio left the clip range; 0 where nothing is clipped.
    clip_fraction: Tensor


def log_prob_of(logits: Tensor, actions: Tensor) -> Tensor:
    """log pi(a|x) of the given actions."""
    log_probs = torch.log_softmax(logits.float(), -1)
    return log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)


def entropy_of(logits: Tensor) -> Tensor:
    """Entropy of each row's policy, in nats; a logit of minus infinity counts as never taken."""
    log_probs = torch.log_softmax(logits.float(), -1)
    return -(log_probs.exp() * log_probs.clamp(min=-1e4)).sum(-1)


def masked_mean(x: Tensor, mask: Tensor | None = None, weights: Tensor | None = None) -> Tensor:
    """Mean of weights * x over the steps in the mask; 0 if there are none."""
    if weights is not None:
        x = x * weights
    if mask is None:
        return x.mean()
    return kept(x, mask).sum() / mask.expand_as(x).sum().clamp(min=1)


def kept(x: Tensor, mask: Tensor | None) -> Tensor:
    """x where the mask is true, else 0.

    Losses take what they compare through this first: what does not count may be anything, infinite
    too, and zero times the gradient of that would not be zero.
    """
    return x if mask is None else torch.where(mask, x, 0.0)


def normalised(advantages: Tensor, mask: Tensor | None = None) -> Tensor:
    """Advantages with mean 0 and deviation 1 over the steps in the mask."""
    mean = masked_mean(advantages, mask)
    variance = masked_mean((kept(advantages, mask) - mean).square(), mask)
    return (advantages - mean) * torch.rsqrt(variance + 1e-8)


def ppo_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantages: Tensor,
    *,
    clip: float,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
) -> PolicyLoss:
    """Schulman et al. 2017: the clipped surrogate."""
    log_ratio = kept(log_prob - old_log_prob, mask)
    advantages = kept(advantages, mask)
    ratio = log_ratio.exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip) * advantages
    loss = -masked_mean(torch.minimum(plain, clipped), mask, weights)
    with torch.no_grad():
        outside = ((ratio - 1.0).abs() > clip).to(ratio.dtype)
        return PolicyLoss(loss, approx_kl(log_ratio, mask), masked_mean(outside, mask))


def policy_gradient_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantages: Tensor,
    *,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
) -> PolicyLoss:
    """-log pi * advantage: A2C with GAE's advantages, IMPALA with V-trace's."""
    gain = kept(log_prob, mask) * kept(advantages.detach(), mask)
    loss = -masked_mean(gain, mask, weights)
    with torch.no_grad():
        log_ratio = kept(log_prob - old_log_prob, mask)
        return PolicyLoss(loss, approx_kl(log_ratio, mask), torch.zeros_like(loss))


def approx_kl(log_ratio: Tensor, mask: Tensor | None = None) -> Tensor:
    """KL(old || new) from samples of old: low variance and never negative."""
    return masked_mean(torch.expm1(log_ratio) - log_ratio, mask)


def value_loss(
    values: Tensor,
    targets: Tensor,
    *,
    kind: str = "mse",
    delta: float = 1.0,
    clip: float | None = None,
    old_values: Tensor | None = None,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """Half the squared error, or Huber's.

    With `clip`, a value may move that far from `old_values` before its gradient stops (PPO's value
    clipping).
    """
    if kind not in VALUE_LOSSES:
        raise ValueError(f"the value loss must be one of {', '.join(VALUE_LOSSES)}, not {kind!r}")
    values, targets = kept(values, mask), kept(targets, mask)
    errors = _value_errors(values, targets, kind, delta)
    if clip is not None:
        if old_values is None:
            raise ValueError("value clipping needs the values of the network that acted")
        near = old_values + (values - old_values).clamp(-clip, clip)
        errors = torch.maximum(errors, _value_errors(near, targets, kind, delta))
    return masked_mean(errors, mask, weights)


def _value_errors(values: Tensor, targets: Tensor, kind: str, delta: float) -> Tensor:
    if kind == "mse":
        return 0.5 * (values - targets).square()
    return F.huber_loss(values, targets, reduction="none", delta=delta)
