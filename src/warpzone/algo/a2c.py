"""Advantage actor-critic (Mnih et al. 2016, synchronous): one pass over a rollout, with the plain
policy gradient. Nothing corrects for a policy that has moved on, so there is no second pass."""

from __future__ import annotations

from torch import Tensor

from warpzone.algo.algorithm import Algorithm, Batch, Losses
from warpzone.algo.losses import policy_gradient_loss
from warpzone.algo.returns import Returns, gae, steps_of
from warpzone.data.types import Rollout


class A2c(Algorithm):
    """Takes single steps in any order, or whole lanes if the network has a memory."""

    def prepare(self, rollout: Rollout) -> Returns:
        """GAE of the values that were seen while playing."""
        return gae(steps_of(rollout), gamma=self.config.gamma, lam=self.config.gae_lambda)

    def loss(self, batch: Batch, entropy_bonus: Tensor) -> Losses:
        """-log pi * advantage, with value loss and entropy bonus."""
        targets, advantages = self.learned(batch)
        policy = policy_gradient_loss(
            batch.log_prob,
            batch.old_log_prob,
            advantages,
            mask=batch.free,
            weights=batch.weights,
            count=batch.all_free,
        )
        return self.combined(batch, policy, targets, entropy_bonus)
