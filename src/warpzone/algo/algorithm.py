"""The interface of algorithms. `ppo.py`, `a2c.py`, `vtrace.py` and `appo.py` are one
page each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor

from warpzone.algo.losses import (
    Moments,
    PolicyLoss,
    entropy_of,
    imitation_loss,
    masked_mean,
    normalised,
    value_loss,
)
from warpzone.algo.returns import Returns, Steps
from warpzone.config.algorithm import AlgorithmConfig
from warpzone.data.types import Rollout


class Whole(NamedTuple):
    """The optimiser step that a minibatch is a piece of. Means and moments are over all of it, so
    that pieces whose gradients are added up give the step that one large minibatch would give."""

    #: Steps in it.
    steps: int
    #: Those of them that the policy chose; 0-dim.
    free: Tensor
    #: Of its advantages, if they are to be normalised.
    moments: Moments | None


class Batch(NamedTuple):
    """A minibatch: single steps, [N], or whole lanes, [T, B]."""

    #: Of the network that learns, with gradient: [..., A], its log-probability of what was played,
    #: and its values.
    logits: Tensor
    log_prob: Tensor
    values: Tensor
    #: The log-probability with which the action was chosen while playing.
    old_log_prob: Tensor
    #: bool: the policy chose the action, and learns from it.
    free: Tensor
    #: bool: a search chose it, and the policy may imitate it.
    shown: Tensor
    #: What `prepare` made of these steps; None where it prepares nothing.
    returns: Returns | None = None
    #: Rewards and ends, with the values of the network that learns; of whole lanes only.
    steps: Steps | None = None
    #: float32 [B]: importance weights of replayed lanes.
    weights: Tensor | None = None
    #: log-probability with the weights at the beginning of the update; None if the algorithm does
    #: not ask for it, or if these weights played.
    proximal: Tensor | None = None
    #: None: the minibatch is an optimiser step of its own.
    whole: Whole | None = None

    @property
    def all_steps(self) -> int | None:
        """What a mean over all steps divides by; None for their number here."""
        return None if self.whole is None else self.whole.steps

    @property
    def all_free(self) -> Tensor | None:
        """What a mean over free steps divides by; None for their number here."""
        return None if self.whole is None else self.whole.free

    def normalised(self, advantages: Tensor) -> Tensor:
        """Mean 0 and deviation 1 over the free steps of the optimiser step."""
        return normalised(advantages, self.free, None if self.whole is None else self.whole.moments)


class Losses(NamedTuple):
    """Of a minibatch; all 0-dim but `errors`. Only `total` has a gradient. If the minibatch is a
    piece of an optimiser step, the pieces add up to the mean over the step."""

    total: Tensor
    policy: Tensor
    value: Tensor
    imitation: Tensor
    entropy: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor
    #: How far the values are from their targets, step by step; sets replay priorities.
    errors: Tensor


@dataclass(frozen=True)
class Algorithm(ABC):
    """Defines returns and losses. What it needs of the run (whole lanes, several passes, replay)
    stands in `config.algorithm.NEEDS`."""

    config: AlgorithmConfig
    #: Whether it needs `Batch.proximal` of rollouts that older weights played.
    anchored: ClassVar[bool] = False

    def prepare(self, rollout: Rollout) -> Returns | None:
        """Once for each rollout, from what the network that played said: what every pass over it
        uses. None if all depends on the network that learns."""
        return None

    def returns(self, batch: Batch) -> Returns:
        """Targets and advantages of a minibatch, without gradient: as prepared, unless told
        otherwise."""
        if batch.returns is None:
            raise TypeError(f"{type(self).__name__} prepares no returns and does not compute any")
        return batch.returns

    def learned(self, batch: Batch) -> Returns:
        """`returns`, with advantages normalised if that is wanted."""
        targets, advantages = self.returns(batch)
        if self.config.normalize_advantages:
            advantages = batch.normalised(advantages)
        return Returns(targets, advantages)

    @abstractmethod
    def loss(self, batch: Batch, entropy_bonus: Tensor) -> Losses:
        """What an optimiser step makes smaller."""

    def combined(
        self, batch: Batch, policy: PolicyLoss, targets: Tensor, entropy_bonus: Tensor
    ) -> Losses:
        """An actor-critic's sum: policy loss, squared error of the values, bonus for entropy, and
        where a search showed the way the log-probability of what it did."""
        value = value_loss(batch.values, targets, weights=batch.weights, count=batch.all_steps)
        entropy = masked_mean(entropy_of(batch.logits), batch.free, batch.weights, batch.all_free)
        imitation = imitation_loss(batch.log_prob, batch.shown, count=batch.all_steps)
        total = policy.loss + self.config.value_coef * value - entropy_bonus * entropy
        return Losses(
            total=total + self.config.imitation * imitation,
            policy=policy.loss.detach(),
            value=value.detach(),
            imitation=imitation.detach(),
            entropy=entropy.detach(),
            approx_kl=policy.approx_kl,
            clip_fraction=policy.clip_fraction,
            errors=targets - batch.values.detach(),
        )
