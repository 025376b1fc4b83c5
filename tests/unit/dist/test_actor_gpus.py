"""Actors that decide on a share of a GPU: what they ask Ray for, and where they then decide. Ray
counts the GPUs that it is told of, so one that is not there does for the first; the second is
tested without CUDA, and was never tried with it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import tiny

from warpzone.config import ConfigError, TrainConfig
from warpzone.dist import cluster
from warpzone.dist.cluster import ENVIRONMENT, open_cluster, require_gpus

# Ray reads it when it is imported.
os.environ.update(ENVIRONMENT)
ray = pytest.importorskip("ray")

from fleet_runs import fleet  # noqa: E402

from warpzone.collect.collector import Collected  # noqa: E402
from warpzone.dist import crew  # noqa: E402
from warpzone.dist.remote import RemoteActor  # noqa: E402
from warpzone.observers.observer import ObservedRun, Observer  # noqa: E402

PATIENCE = 120.0


def settings(**changes: Any) -> TrainConfig:
    values: dict[str, Any] = {"algo": "vtrace", "actors": 2, "actor_gpus": 0.25, "max_steps": 9600}
    return tiny(**{**values, **changes})


def on_the_cpu() -> type[RemoteActor]:
    """Actors that have their share, and decide on the CPU nevertheless. A class that is made here
    travels with what it is made of."""

    class Actor(RemoteActor):
        def device(self, config: TrainConfig) -> torch.device:
            assert config.actor_gpus == 0.25
            return torch.device("cpu")

    return Actor


class Resources(Observer):
    """How much of a GPU is left while the actors are there; Ray tells a moment late."""

    def __init__(self) -> None:
        self.left = -1.0

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        ends = time.monotonic() + PATIENCE
        while self.left != 0.5 and time.monotonic() < ends:
            self.left = float(ray.available_resources().get("GPU", 0.0))
            time.sleep(0.05)


@pytest.mark.limit(600)
def test_every_actor_asks_for_its_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_gpus_here", lambda: 1)
    monkeypatch.setattr(crew, "RemoteActor", on_the_cpu())
    seen = Resources()
    with open_cluster("", cpus=2, store=100 << 20, gpu_share=0.25) as made:
        config = settings(runs_dir=str(tmp_path), run_name="one")
        run = fleet(config, updates=2, cluster=made, watch=lambda collector: seen)
        with pytest.raises(crew.FleetError, match=r"did not start: --actor-gpus 0\.25: PyTorch"):
            monkeypatch.setattr(crew, "RemoteActor", blind())
            fleet(config.replace(run_name="two"), cluster=made)
    assert seen.left == 0.5
    assert [row["actors_present"] for row in run["rows"]] == [2, 2]


def blind() -> type[RemoteActor]:
    """Actors whose machine has no CUDA device after all."""

    class Actor(RemoteActor):
        def device(self, config: TrainConfig) -> torch.device:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(torch.cuda, "is_available", lambda: False)
                return super().device(config)

    return Actor


@pytest.mark.parametrize(
    ("share", "there", "kind"), [(0.0, True, "cpu"), (0.0, False, "cpu"), (0.5, True, "cuda")]
)
def test_an_actor_decides_on_the_gpu_that_it_has_a_share_of(
    share: float, there: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the learner learns on."""
    actor = here(monkeypatch)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    for learner in ("cpu", "auto"):
        assert actor.device(settings(actor_gpus=share, device=learner)).type == kind


def here(patch: pytest.MonkeyPatch) -> RemoteActor:
    """An actor in this process, which it does not end when nobody asks for it."""
    patch.setattr(RemoteActor, "_end_if_orphaned", lambda actor: None)
    return RemoteActor()


def test_an_actor_of_another_share_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    actor = here(monkeypatch)
    config = settings(actor_gpus=0.0)
    actor._settings = (config, 0, 2)
    assert actor.plays(config.replace(max_lag=1), (0, 2))
    assert not actor.plays(config.replace(actor_gpus=0.5), (0, 2))


@pytest.mark.parametrize(
    ("actors", "share", "gpus", "room"),
    [(1, 1.0, 0, 0), (2, 0.6, 1, 1), (3, 0.6, 2, 2), (4, 1 / 3, 1, 3), (2, 1.0, 1, 1)],
)
def test_more_actors_than_gpus_have_room_for(
    actors: int, share: float, gpus: int, room: int
) -> None:
    """An actor does not have parts of two GPUs."""
    number = f"{gpus} GPU{'' if gpus == 1 else 's'}"
    with pytest.raises(ConfigError, match=f"the Ray cluster has {number}, with room for {room}$"):
        require_gpus(actors, share, gpus, "the Ray cluster")
    require_gpus(max(room, 1), share, max(gpus, 1), "the Ray cluster")
    require_gpus(actors, 0.0, 0, "the Ray cluster")


def test_a_cluster_without_gpus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_connect", lambda address: None)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 8.0, "GPU": 1.0})
    with open_cluster("there:1", cpus=2, store=0, gpu_share=0.5) as found:
        assert found.remote
    with (
        pytest.raises(ConfigError, match=r"--actors 3 with --actor-gpus 0\.5: the Ray cluster has"),
        open_cluster("there:1", cpus=3, store=0, gpu_share=0.5),
    ):
        pass
