"""How many processes a run is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import Above, AtLeast


@dataclass(frozen=True)
class ScaleConfig:
    """How many processes a run is made of. They may change when it is resumed."""

    devices: Annotated[int, AtLeast(1)] = 1
    """Ranks on each machine: processes that share lanes and learning, each on a GPU or cores."""
    nodes: Annotated[int, AtLeast(1)] = 1
    """Machines, each with --devices ranks; torchrun, SLURM or ssh start the command on each."""
    rank_timeout: Annotated[float, Above(0)] = 120.0
    """Seconds after which a rank that does not answer ends the run."""

    @property
    def ranks(self) -> int:
        """Processes that learn together."""
        return self.devices * self.nodes
