"""Losses, each a mean over the steps that count.

`mask` says which steps count (bool): forced steps do not teach the policy, burn-in teaches nothing.
`weights` are the importance weights of replayed segments; they scale terms, not the mean's divisor.
Both broadcast against `[T, B]` or a flat minibatch, and None means all ones. `count` is how many
steps count in the optimiser step that the minibatch is a piece of: the results of its pieces then
add up to the mean over all of them. None means that there is no other piece.
"""

from typing import NamedTuple

import torch
from torch import Tensor


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


def masked_mean(
    x: Tensor,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
    count: Tensor | int | None = None,
) -> Tensor:
    """Mean of weights * x over the steps in the mask; 0 if there are none."""
    if weights is not None:
        x = x * weights
    if count is not None:
        return kept(x, mask).sum() / count
    if mask is None:
        return x.mean()
    return kept(x, mask).sum() / mask.expand_as(x).sum().clamp(min=1)


def kept(x: Tensor, mask: Tensor | None) -> Tensor:
    """x where the mask is true, else 0.

    Losses take what they compare through this first: what does not count may be anything, infinite
    too, and zero times the gradient of that would not be zero.
    """
    return x if mask is None else torch.where(mask, x, 0.0)


class Moments(NamedTuple):
    """Mean and variance of advantages; 0-dim."""

    mean: Tensor
    variance: Tensor


def moments(advantages: Tensor, mask: Tensor | None = None) -> Moments:
    """Over the steps in the mask."""
    mean = masked_mean(advantages, mask)
    return Moments(mean, masked_mean((kept(advantages, mask) - mean).square(), mask))


def normalised(
    advantages: Tensor, mask: Tensor | None = None, over: Moments | None = None
) -> Tensor:
    """Advantages with mean 0 and deviation 1 over the steps in the mask, or by given moments."""
    mean, variance = moments(advantages, mask) if over is None else over
    return (advantages - mean) * torch.rsqrt(variance + 1e-8)


def ppo_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantages: Tensor,
    *,
    clip: float,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
    count: Tensor | int | None = None,
) -> PolicyLoss:
    """Schulman et al. 2017: the clipped surrogate."""
    log_ratio = kept(log_prob - old_log_prob, mask)
    advantages = kept(advantages, mask)
    ratio = log_ratio.exp()
    plain = ratio * advantages
    clipped = ratio.clamp(1.0 - clip, 1.0 + clip) * advantages
    loss = -masked_mean(torch.minimum(plain, clipped), mask, weights, count)
    with torch.no_grad():
        outside = ((ratio - 1.0).abs() > clip).to(ratio.dtype)
        return PolicyLoss(
            loss, approx_kl(log_ratio, mask, count), masked_mean(outside, mask, count=count)
        )


def policy_gradient_loss(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantages: Tensor,
    *,
    mask: Tensor | None = None,
    weights: Tensor | None = None,
    count: Tensor | int | None = None,
) -> PolicyLoss:
    """-log pi * advantage: A2C with GAE's advantages, IMPALA with V-trace's."""
    gain = kept(log_prob, mask) * kept(advantages.detach(), mask)
    loss = -masked_mean(gain, mask, weights, count)
    with torch.no_grad():
        log_ratio = kept(log_prob - old_log_prob, mask)
        return PolicyLoss(loss, approx_kl(log_ratio, mask, count), torch.zeros_like(loss))


def approx_kl(
    log_ratio: Tensor, mask: Tensor | None = None, count: Tensor | int | None = None
) -> Tensor:
    """KL(old || new) from samples of old: low variance and never negative."""
    return masked_mean(torch.expm1(log_ratio) - log_ratio, mask, count=count)


def value_loss(
    values: Tensor,
    targets: Tensor,
    *,
    weights: Tensor | None = None,
    count: Tensor | int | None = None,
) -> Tensor:
    """Half the squared error, forced steps included: values are learned from what happened."""
    return masked_mean(0.5 * (values - targets).square(), None, weights, count)


def imitation_loss(log_prob: Tensor, shown: Tensor, *, count: Tensor | int | None = None) -> Tensor:
    """-log pi of what was shown. A mean over all steps, so that it weighs as much as there is to
    imitate."""
    return -kept(log_prob, shown).sum() / (shown.numel() if count is None else count)
