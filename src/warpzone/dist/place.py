"""Who started this process as a rank: nobody, this package, torchrun or SLURM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warpzone.config import ConfigError, TrainConfig

if TYPE_CHECKING:
    import torch

#: Folder in which the ranks that this package started on one machine find each other.
MEETING = "WARPZONE_RANKS"
#: What who starts `--nodes` without torchrun and SLURM says on each machine: where the first one
#: is, a port of its own that is free there, and which one this is. Without a port every machine
#: would wait at another one.
BY_HAND = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")


@dataclass(frozen=True)
class Place:
    """A rank among all ranks."""

    by: Literal["fabric", "torchrun", "slurm"]
    rank: int
    size: int
    local_rank: int
    local_size: int
    #: How often torchrun has restarted the ranks, and how often it may.
    restarts: int = 0
    most_restarts: int = 0

    @property
    def leads(self) -> bool:
        return self.rank == 0

    @property
    def one_machine(self) -> bool:
        return self.size == self.local_size


def find_place(config: TrainConfig, environ: Mapping[str, str] = os.environ) -> Place | None:
    """This process's place; None if it is a run of its own."""
    if "TORCHELASTIC_RUN_ID" in environ:
        place = Place(
            "torchrun",
            rank=int(environ["RANK"]),
            size=int(environ["WORLD_SIZE"]),
            local_rank=int(environ["LOCAL_RANK"]),
            local_size=int(environ["LOCAL_WORLD_SIZE"]),
            restarts=int(environ.get("TORCHELASTIC_RESTART_COUNT", 0)),
            most_restarts=int(environ.get("TORCHELASTIC_MAX_RESTARTS", 0)),
        )
    elif int(environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1 and "SLURM_PROCID" in environ:
        size = int(environ["SLURM_STEP_NUM_TASKS"])
        nodes = int(environ.get("SLURM_STEP_NUM_NODES", 1))
        place = Place(
            "slurm",
            rank=int(environ["SLURM_PROCID"]),
            size=size,
            local_rank=int(environ["SLURM_LOCALID"]),
            local_size=size // nodes,
        )
    elif config.ranks > 1:
        node, local = int(environ.get("NODE_RANK", 0)), int(environ.get("LOCAL_RANK", 0))
        return Place("fabric", node * config.devices + local, config.ranks, local, config.devices)
    else:
        return None
    return place


def follows(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is a rank other than the first, whatever its configuration says."""
    by_slurm = int(environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1
    names = ["RANK"] if "TORCHELASTIC_RUN_ID" in environ else ["NODE_RANK"]
    by_hand = MEETING in environ or "NODE_RANK" in environ
    names += ["SLURM_PROCID"] if by_slurm else ["LOCAL_RANK"] if by_hand else []
    return any(int(environ.get(name, 0)) for name in names)


def fitted(config: TrainConfig, place: Place) -> TrainConfig:
    """The configuration of a run with these ranks. ConfigError if they contradict it, or if it
    cannot be done by several ranks."""
    devices, nodes = place.local_size, place.size // place.local_size
    same = (config.devices, config.nodes) == (devices, nodes)
    if place.by != "fabric" and config.ranks > 1 and not same:
        raise ConfigError(
            f"--devices {config.devices} --nodes {config.nodes} are asked for, and {place.by} "
            f"started {devices} on each of {nodes}; leave them out"
        )
    config = config.replace(devices=devices, nodes=nodes)
    if place.most_restarts and not config.run_name:
        raise ConfigError("torchrun restarts ranks, which find the run by its --run-name: give one")
    if place.restarts and config.resume == "never":
        config = config.replace(resume="auto")
    return config


def require_devices(
    config: TrainConfig,
    device: torch.device,
    place: Place,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """ConfigError if this machine has fewer GPUs or cores than ranks, or if nobody said where the
    other machines are."""
    import torch

    from warpzone.eval.policy import cores

    if device.type == "cuda":
        there, what = torch.cuda.device_count(), "CUDA device"
    else:
        there, what = cores(), "core"
    if config.devices > there:
        raise ConfigError(
            f"--devices {config.devices}: there {'is' if there == 1 else 'are'} {there} {what}"
            f"{'' if there == 1 else 's'} here"
        )
    missing = [name for name in BY_HAND if name not in environ]
    if place.by == "fabric" and config.nodes > 1 and missing:
        *most, last = missing
        names = f"{', '.join(most)} and {last}" if most else last
        raise ConfigError(
            f"--nodes {config.nodes}: {names} must be set on each machine; start with torchrun or "
            "SLURM, which set them (scripts/cluster)"
        )
