"""PPO for actors that lag behind (as in Sample Factory, Petrenko et al. 2020): PPO's clipped
surrogate with the returns of V-trace, made anew for every minibatch. So it may pass over a rollout
several times, and the rollout may be of an older policy."""

from __future__ import annotations

from warpzone.algo.algorithm import Batch
from warpzone.algo.ppo import Ppo
from warpzone.algo.returns import Returns
from warpzone.algo.vtrace import corrected
from warpzone.data.types import Rollout


class Appo(Ppo):
    """Takes whole lanes, fresh or replayed. Prepares nothing: returns depend on the network that
    learns."""

    def prepare(self, rollout: Rollout) -> None:
        return None

    def returns(self, batch: Batch) -> Returns:
        """V-trace's, with advantages as they are: the surrogate has the ratio itself."""
        return corrected(self.config, batch, weighed=False)
