"""PPO for actors that lag behind (as in Sample Factory, Petrenko et al. 2020): PPO's clipped
surrogate with the returns of V-trace, made anew for every minibatch. So it may pass over a rollout
several times, and the rollout may be of an older policy.

Of an older policy the first optimiser steps would already find most ratios outside of the clip
range. There the change is measured from the weights at the beginning of the update instead, and the
distance between these and the older policy is a weight of the step (Hilton et al. 2022), limited as
V-trace limits it."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from warpzone.algo.algorithm import Batch
from warpzone.algo.ppo import Ppo
from warpzone.algo.returns import Returns
from warpzone.algo.vtrace import corrected
from warpzone.data.types import Rollout


class Appo(Ppo):
    """Takes whole lanes, fresh or replayed. Prepares nothing: returns depend on the network that
    learns."""

    anchored: ClassVar[bool] = True

    def prepare(self, rollout: Rollout) -> None:
        return None

    def returns(self, batch: Batch) -> Returns:
        """V-trace's, with advantages as they are: the surrogate has the ratio itself."""
        return corrected(self.config, batch, weighed=False)

    def near(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        if batch.proximal is None:
            return super().near(batch)
        weights = (batch.proximal - batch.old_log_prob).exp().clamp(max=self.config.rho_clip)
        return batch.proximal, weights if batch.weights is None else weights * batch.weights
