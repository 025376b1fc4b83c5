"""Starts a run with actors. Nothing of Ray is imported here before its environment is set."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from warpzone.config import TrainConfig
from warpzone.dist.cluster import open_cluster
from warpzone.dist.parcels import parcel_bytes
from warpzone.env.actions import action_table

if TYPE_CHECKING:
    from warpzone.collect.collector import Collector
    from warpzone.train.loop import Collecting, Run

#: Bytes of Ray's shared memory beside the rollouts: weights of a few versions.
SPARE = 256 << 20


def run_fleet(config: TrainConfig, address: str, work: Callable[[Collecting], int]) -> int:
    """Runs `work` with what makes a run's collector, and returns its exit code. address: that of a
    Ray cluster; empty for one on this machine."""
    actions = len(action_table(config.actions).masks)
    store = parcel_bytes(config, actions) * (config.actor_rollouts + 2) + SPARE
    share = config.actor_gpus
    with open_cluster(address, cpus=config.actors, store=store, gpu_share=share) as cluster:
        from warpzone.dist.fleet import FleetCollector

        def collecting(run: Run) -> Collector:
            # It has the methods of a collector that a run and its observers use.
            return cast("Collector", FleetCollector(run, cluster))

        return work(collecting)
