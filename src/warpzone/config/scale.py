"""How many processes a run is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import Above, AtLeast, Lasts, Refusal, Share


@dataclass(frozen=True)
class ScaleConfig:
    """How many processes a run is made of. They may change when it is resumed."""

    devices: Annotated[int, AtLeast(1)] = 1
    """Ranks on each machine: processes that share lanes and learning, each on a GPU or cores."""
    nodes: Annotated[int, AtLeast(1)] = 1
    """Machines, each with --devices ranks; torchrun, SLURM or ssh start the command on each."""
    rank_timeout: Annotated[float, Above(0), Lasts("seconds")] = 120.0
    """Seconds after which a rank that does not answer ends the run, and an actor is replaced."""
    actors: Annotated[int, AtLeast(0)] = 0
    """Ray actors that play the lanes beside the learner; 0: the learner plays them itself."""
    max_lag: Annotated[int, AtLeast(0)] = 2
    """Updates that the weights of an actor may be behind; 0: actors and learner take turns."""
    actor_rollouts: Annotated[int, AtLeast(1)] = 2
    """Rollouts of each actor that wait for the learner at most, the one it plays included."""
    actor_gpus: Annotated[float, Share()] = 0.0
    """Share of a GPU that each actor has of Ray and decides on; 0: actors decide on the CPU."""

    @property
    def ranks(self) -> int:
        """Processes that learn together."""
        return self.devices * self.nodes


def refusals(config: ScaleConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        config.actors > 0 and config.ranks > 1,
        f"--actors {config.actors} play for one learner, and there are {config.ranks} ranks; leave "
        "out --devices and --nodes, or --actors",
    )
    yield (
        config.actor_gpus > 0 and not config.actors,
        "--actor-gpus is the share of a GPU that each of --actors has: say how many",
    )
