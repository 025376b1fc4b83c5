"""What Lightning is told of the ranks: who starts them, and which one this process is.

Left to itself it guesses from variables. In a SLURM job that is called `bash` or `interactive` it
would start ranks of its own beside the tasks that are there, and in a batch script without srun
none at all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from warpzone.dist.place import Place

if TYPE_CHECKING:
    from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment

#: Ports of steps whose user has chosen none: this one, and those after it.
FIRST_PORT, PORTS = 15_000, 10_000
LOOPBACK = "127.0.0.1"


def environment_of(place: Place) -> ClusterEnvironment:
    """Lightning's view of a place."""
    from lightning.fabric.plugins.environments.cluster_environment import ClusterEnvironment
    from lightning.fabric.plugins.environments.lightning import LightningEnvironment
    from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment

    if place.by == "torchrun":
        return TorchElasticEnvironment()
    if place.by == "fabric":
        return LightningEnvironment()

    class Step(ClusterEnvironment):
        """The tasks of one `srun`. Lightning's own class knows jobs, and refuses `--ntasks`."""

        @property
        def creates_processes_externally(self) -> bool:
            return True

        @property
        def main_address(self) -> str:
            return step_address()

        @property
        def main_port(self) -> int:
            return step_port()

        @staticmethod
        def detect() -> bool:
            return False

        def world_size(self) -> int:
            return place.size

        def set_world_size(self, size: int) -> None:
            """It is known."""

        def global_rank(self) -> int:
            return place.rank

        def set_global_rank(self, rank: int) -> None:
            """It is known, and tasks need not be numbered machine by machine."""

        def local_rank(self) -> int:
            return place.local_rank

        def node_rank(self) -> int:
            return int(os.environ.get("SLURM_NODEID", 0))

    return Step()


def step_address(environ: Mapping[str, str] = os.environ) -> str:
    """The machine of rank 0: the first of a step's, whose list may look like `gpu[3-5,9],cpu1`."""
    if "MASTER_ADDR" in environ:
        return environ["MASTER_ADDR"]
    names = ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
    nodes = next((environ[name] for name in names if name in environ), LOOPBACK)
    prefix, bracket, rest = nodes.partition("[")
    if not bracket or "," in prefix:
        return nodes.partition(",")[0]
    inside, _, suffix = rest.partition("]")
    first = inside.replace("-", ",").partition(",")[0]
    return prefix + first + suffix.partition(",")[0]


def step_port(environ: Mapping[str, str] = os.environ) -> int:
    """A port that all tasks of a step know without a word, and other steps seldom have."""
    if "MASTER_PORT" in environ:
        return int(environ["MASTER_PORT"])
    number = sum(int(environ.get(name, 0)) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    return FIRST_PORT + number % PORTS
