"""An actor of a fleet: a process that owns lanes and a copy of the policy, and plays when asked."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from numpy.typing import NDArray

import warpzone
from warpzone import rom
from warpzone.collect.collector import Collector, News
from warpzone.collect.lanes import make_groups
from warpzone.collect.ranks import Ranks
from warpzone.collect.streams import stream_seed
from warpzone.config import ConfigError, TrainConfig
from warpzone.dist.moments import ActorsArchive, Told, guide_of
from warpzone.dist.parcels import Parcel, pack_rollout
from warpzone.dist.practice import ActorsWays
from warpzone.env.actions import action_table
from warpzone.model.own import make_agent
from warpzone.rom import native
from warpzone.run.matching import compare
from warpzone.train.device import prepare_device

T = TypeVar("T")

#: Seconds without a word of the learner after which an actor ends: nobody resumed the run.
ORPHANED = 600.0
CPU = torch.device("cpu")
#: Seeds of actors that take the place of lost ones must not repeat theirs.
NEXT_LIFE = 1_000_003


class Part(Ranks):
    """An actor's part of the lanes. It waits for nobody: what others would exchange is its own."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank = rank
        self.size = size
        #: What the last rollout told.
        self.news: News | None = None

    def gather(self, value: T) -> list[T]:
        if isinstance(value, News):
            self.news = value
        return [value]


class RemoteActor:
    """What Ray runs. Its calls are made one after the other."""

    def __init__(self) -> None:
        self._heard = time.monotonic()
        self._settings: tuple[TrainConfig, int, int] | None = None
        threading.Thread(target=self._end_if_orphaned, name="orphan", daemon=True).start()

    def _end_if_orphaned(self) -> None:
        while time.monotonic() - self._heard < ORPHANED:
            time.sleep(ORPHANED / 20)
        os._exit(0)

    def device(self, config: TrainConfig) -> torch.device:
        """Where it decides: on the GPU that Ray shows it a share of, if it has one. ConfigError if
        there is none after all."""
        if not config.actor_gpus:
            return CPU
        if not torch.cuda.is_available():
            raise ConfigError(
                f"--actor-gpus {config.actor_gpus:g}: PyTorch sees no CUDA device there; leave it "
                "out"
            )
        return torch.device("cuda")

    def begin(self, config: TrainConfig, part: tuple[int, int], life: int, threads: int) -> str:
        """Makes lanes and policy; the version of this package. part: its number, and how many there
        are; life: how many had its number before."""
        self._heard = time.monotonic()
        self._settings = (config, *part)
        torch.set_num_threads(threads)
        engine = config.num_threads or threads
        device = self.device(config)
        # One thread plays and decides in turns, and then two groups only decide twice as often. A
        # single actor keeps them: it decides bit by bit as one process does. So does one with a
        # GPU, which decides for a group while the thread plays the other.
        in_turns = engine == 1 and part[1] > 1 and device.type == "cpu"
        self._config = config.replace(
            actors=0,
            actor_gpus=0.0,
            device=device.type,
            num_threads=engine,
            groups=1 if in_turns else config.groups,
            seed=config.seed + life * NEXT_LIFE,
        )
        self._part = Part(*part)
        prepare_device(device)
        if device.type == "cuda":
            # It samples by its own generator there, and actors must not draw the same.
            torch.cuda.manual_seed(stream_seed(self._config.seed, "actions") + part[0])
        image = rom.find(config.rom)
        self._agent = make_agent(self._config, len(action_table(config.actions).masks)).to(device)
        self._groups = make_groups(self._config, image, native.load(image), device, self._part)
        self._collector = Collector(self._config, self._agent, self._groups, device, self._part)
        self._archive = ActorsArchive(self._config, self._part)
        self._collector.guide.archive = self._archive
        self._ways = ActorsWays(self._config, self._groups.rom, self._groups.native)
        self._collector.guide.ways = self._ways
        self._version = -1
        return warpzone.__version__

    def plays(self, config: TrainConfig, part: tuple[int, int]) -> bool:
        """Whether it is this run's actor already, and can go on with its games."""
        self._heard = time.monotonic()
        if self._settings is None or self._settings[1:] != part:
            return False
        if self._settings[0].actor_gpus != config.actor_gpus:
            return False
        difference = compare(config, self._settings[0])
        return not (difference.network or difference.others)

    def alive(self) -> None:
        """The learner is there, and asks whether this one is."""
        self._heard = time.monotonic()

    def play(
        self,
        weights: Mapping[str, NDArray[Any]],
        version: int,
        global_step: int,
        told: Told,
    ) -> Parcel:
        """A rollout. weights: of the policy after so many updates, with its noise; told: what the
        learner knows by then from the episodes of all actors."""
        self._heard = time.monotonic()
        if version != self._version:
            self._load(weights)
            self._version = version
        self._follow(told)
        self._collector.prepare(global_step)
        collected = self._collector.play(version)
        self._heard = time.monotonic()
        arrays, state = pack_rollout(collected.rollout)
        return Parcel(
            arrays=arrays,
            state=state,
            owners=collected.owners,
            ended=self._part.news.ended if self._part.news is not None else [],
            metrics=self._collector.guide.metrics(),
            info=torch.cat([torch.from_numpy(group.info) for group in self._groups]).numpy(),
            lasted=self._archive.lasted,
        )

    def _follow(self, told: Told) -> None:
        """Explores by what all actors have found."""
        self._collector.guide.curriculum.load_state_dict(told.curriculum)
        if self._config.archive_share:
            self._archive.follow(told, _get, self._groups, self._collector.ages)
        if told.ways is not None:
            self._ways.follow(told.ways, _get, self._groups)

    @torch.no_grad()
    def _load(self, weights: Mapping[str, NDArray[Any]]) -> None:
        for name, place in tensors_of(self._agent).items():
            # A copy: what Ray shares cannot be written to.
            place.copy_(torch.tensor(weights[name]))

    def state(self, told: Told | None, *, lanes: bool) -> dict[str, Any]:
        """What a checkpoint holds of it. told: what the learner knows by now."""
        self._heard = time.monotonic()
        if told is not None:
            self._follow(told)
        return self._collector.state_dict(lanes=lanes)

    def load(self, whole: Mapping[str, Any], own: Mapping[str, Any]) -> str:
        """Goes on from the lanes of a checkpoint, of which it takes its own; `own` replaces what is
        not by lane. Returns why its games start again, if they do."""
        self._heard = time.monotonic()
        guide = guide_of(whole.get("guide", {}), own.get("guide", {}))
        state = {**whole, **own, **({"guide": guide} if guide else {})}
        return self._collector.load_state_dict(state)


def _get(references: list[Any]) -> list[Any]:
    import ray

    found: list[Any] = ray.get(references) if references else []
    return found


def tensors_of(agent: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Weights and noise by name; they share the agent's memory."""
    named = {**dict(agent.named_parameters()), **dict(agent.named_buffers())}
    return {name: tensor.detach() for name, tensor in named.items()}
