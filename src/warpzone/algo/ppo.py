"""Proximal policy optimisation (Schulman et al. 2017): several passes over a rollout, each of whose
steps is clipped where it would move the policy too far from the one that played."""

from __future__ import annotations

from torch import Tensor

from warpzone.algo.algorithm import Algorithm, Batch, Losses
from warpzone.algo.losses import ppo_loss
from warpzone.algo.returns import Returns, gae, steps_of
from warpzone.data.types import Rollout


class Ppo(Algorithm):
    """Takes single steps in any order, or whole lanes if the network has a memory."""

    def prepare(self, rollout: Rollout) -> Returns | None:
        """GAE of the values that were seen while playing; all passes use the same."""
        return gae(steps_of(rollout), gamma=self.config.gamma, lam=self.config.gae_lambda)

    def near(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The log-probabilities from which the surrogate's ratio is measured, and how much each
        step weighs."""
        return batch.old_log_prob, batch.weights

    def loss(self, batch: Batch, entropy_bonus: Tensor) -> Losses:
        """The clipped surrogate, with value loss and entropy bonus."""
        targets, advantages = self.learned(batch)
        near, weights = self.near(batch)
        policy = ppo_loss(
            batch.log_prob,
            near,
            advantages,
            clip=self.config.clip,
            mask=batch.free,
            weights=weights,
            count=batch.all_free,
        )
        return self.combined(batch, policy, targets, entropy_bonus)
