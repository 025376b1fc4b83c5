"""PPO for actors that lag behind (as in Sample Factory, Petrenko et al. 2020): PPO's clipped
surrogate with the returns of V-trace, made anew for every minibatch. So it may pass over a rollout
several times, and the rollout may be of an older policy."""

from __future__ import annotations

from torch import Tensor

from warpzone.algo.algorithm import Batch, Losses
from warpzone.algo.losses import ppo_loss
from warpzone.algo.returns import Returns
from warpzone.algo.vtrace import Vtrace


class Appo(Vtrace):
    """Takes whole lanes, fresh or replayed."""

    def returns(self, batch: Batch) -> Returns:
        """V-trace's, with advantages as they are: the surrogate has the ratio itself."""
        return self.corrected(batch, weighed=False)

    def loss(self, batch: Batch, entropy_bonus: Tensor) -> Losses:
        """The clipped surrogate, with value loss and entropy bonus."""
        targets, advantages = self.learned(batch)
        policy = ppo_loss(
            batch.log_prob,
            batch.old_log_prob,
            advantages,
            clip=self.config.clip,
            mask=batch.free,
            weights=batch.weights,
            count=batch.all_free,
        )
        return self.combined(batch, policy, targets, entropy_bonus)
