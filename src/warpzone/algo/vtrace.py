"""IMPALA (Espeholt et al. 2018): one pass, with returns that V-trace corrects for the distance
between the policy that played and the one that learns. That is why it can also learn from replayed
segments, and why it needs whole lanes: the correction runs along them."""

from __future__ import annotations

from torch import Tensor

from warpzone.algo.algorithm import Algorithm, Batch, Losses
from warpzone.algo.losses import policy_gradient_loss
from warpzone.algo.returns import Returns, vtrace
from warpzone.config.algorithm import AlgorithmConfig


class Vtrace(Algorithm):
    """Takes whole lanes, fresh or replayed. Prepares nothing: returns depend on the network that
    learns."""

    def returns(self, batch: Batch) -> Returns:
        """V-trace of the values and probabilities of the network that learns."""
        return corrected(self.config, batch, weighed=True)

    def loss(self, batch: Batch, entropy_bonus: Tensor) -> Losses:
        """-log pi * corrected advantage, with value loss and entropy bonus. Replayed lanes count by
        their importance weights."""
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


def corrected(config: AlgorithmConfig, batch: Batch, *, weighed: bool) -> Returns:
    """V-trace's returns of whole lanes; `weighed`: advantages carry their importance weights."""
    if batch.steps is None:
        raise TypeError("V-trace needs whole lanes")
    return vtrace(
        batch.steps,
        batch.log_prob.detach() - batch.old_log_prob,
        gamma=config.gamma,
        lam=config.gae_lambda,
        rho_bar=config.rho_clip,
        c_bar=config.c_clip,
        weighed=weighed,
    )
