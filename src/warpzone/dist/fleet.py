"""A run whose lanes are played by actors: what the learner has in the place of a collector."""

from __future__ import annotations

import hashlib
import secrets
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import ray
import torch
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.collector import ARCHIVE_EMPTY, Collected
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import EpisodeLog, in_order
from warpzone.collect.packing import pack
from warpzone.collect.streams import generator
from warpzone.config import TrainConfig
from warpzone.dist.cluster import Cluster
from warpzone.dist.crew import Crew, FleetError
from warpzone.dist.moments import LearnersArchive, Told
from warpzone.dist.parcels import Landing, Parcel, Tallies, mean_owners
from warpzone.dist.practice import LearnersWays
from warpzone.dist.queue import Arrived
from warpzone.dist.remote import tensors_of
from warpzone.health.pulse import Pulse
from warpzone.train.joining import joined, own_lanes

if TYPE_CHECKING:
    from warpzone.train.loop import Run

#: Of an actor's state: what is its own, and not by lane.
OWN = ("sampling", "guide")


@dataclass
class SeenLanes:
    """Lanes of an actor, as far as the learner knows them."""

    lanes: slice
    info: NDArray[np.int32]

    @property
    def count(self) -> int:
        return len(self.info)


class FleetLanes(list[SeenLanes]):
    """The lanes that the newest rollout is of."""

    def take_events(self) -> list[dict[str, Any]]:
        """Events of other back-ends, which actors do not play."""
        return []


@dataclass(frozen=True)
class FleetGuide:
    """How the run explores, as observers see it."""

    curriculum: Curriculum
    archive: LearnersArchive
    ways: LearnersWays


def threads_of(
    config: TrainConfig, cores: int, device: torch.device, *, remote: bool
) -> tuple[int, int]:
    """Threads of the learner and of each actor. On one machine all of them together have its cores:
    with more threads than cores those of one operation wait for each other. Where they take turns
    each has all cores in its own, and on a cluster an actor has one CPU."""
    if remote:
        return cores, 1
    if not config.max_lag:
        return cores, max(1, cores // config.actors)
    learns_here = device.type == "cpu"
    each = max(1, cores // (config.actors + learns_here))
    return max(1, cores - config.actors * each) if learns_here else cores, each


class FleetCollector:
    """Weights to the actors, rollouts from them. They go on playing while the learner learns."""

    def __init__(self, run: Run, cluster: Cluster) -> None:
        config = run.config
        self.config = config
        self.pulse = Pulse()
        self._run = run
        self._cluster = cluster
        self._agent = run.policies.acting
        self.episodes = EpisodeLog(
            config.num_envs,
            time_limit=config.episode_timeout_steps,
            setbacks=config.end_on_setback,
            window=config.episode_window,
        )
        #: They learn from the episodes of all actors, who get what they know with the weights.
        self._curriculum = Curriculum(config)
        self._archive = LearnersArchive(config)
        self._ways = LearnersWays(config, run.rom, run.native)
        self.guide = FleetGuide(self._curriculum, self._archive, self._ways)
        #: What a resumed learner is to say.
        self.notes: list[str] = []
        self._landing = Landing(config.num_envs, run.device)
        self._tallies = Tallies()
        #: Names the actors of this run on a cluster, with the run's folder.
        self._token = secrets.token_hex(8)
        self._crew: Crew | None = None
        #: Of this process, when no actor plays beside it.
        self._threads = torch.get_num_threads()
        self._global_step = 0
        share = config.num_envs // config.actors
        fields = len(_engine.INFO_FIELDS)
        self.groups = FleetLanes(
            SeenLanes(slice(first, first + share), np.zeros((share, fields), np.int32))
            for first in range(0, config.num_envs, share)
        )

    # --- actors ---------------------------------------------------------------------------------
    def _begun(self) -> Crew:
        """The actors; made when they are needed first, with nothing to go on from."""
        if self._crew is None:
            crew = self._make_crew()
            crew.serve()
        return cast("Crew", self._crew)

    def _make_crew(self) -> Crew:
        config, run = self.config, self._run
        learning, threads = threads_of(
            config, torch.get_num_threads(), run.device, remote=self._cluster.remote
        )
        torch.set_num_threads(learning)
        # A folder that was copied is another run, whose actors these are not.
        place = f"{self._token}:{run.folder.path.resolve()}"
        name = hashlib.sha256(place.encode()).hexdigest()[:24]
        crew = Crew(config, self._cluster, name, config.num_threads or threads, run.global_update)
        crew.start()
        self._crew = crew
        return crew

    def close(self) -> None:
        """Ends the actors. Closing twice is allowed."""
        torch.set_num_threads(self._threads)
        if self._crew is not None:
            self._crew.close()

    # --- rollouts -------------------------------------------------------------------------------
    def prepare(self, global_step: int) -> None:
        """Before an update that begins after so many steps of the run."""
        self._global_step = global_step

    def play(self, version: int) -> Collected:
        """Hands out the weights of an update, and waits for its rollouts."""
        self.pulse.enter("collect")
        crew = self._begun()
        weights = {name: part.cpu().numpy() for name, part in tensors_of(self._agent).items()}
        crew.publish(weights, version, self._global_step, self._told())
        return self._collected(crew, crew.take(self.pulse.beat), version)

    def _collected(self, crew: Crew, taken: list[Arrived[Parcel]], version: int) -> Collected:
        parcels = [one.rollout for one in taken]
        tickets = [one.ticket for one in taken]
        for lanes, parcel in zip(self.groups, parcels, strict=True):
            lanes.info = parcel.info
        ended = in_order(parcel.ended for parcel in parcels)
        self.episodes.count(ended)
        if self._curriculum.active or self.config.archive_share:
            self._curriculum.learn(ended)
        if self.config.archive_share:
            self._archive.take(parcels, ended)
        if self.config.practises_ways:
            self._ways.learn(ended)
            self._ways.look(self._curriculum, self._archive.pressed)
        lags = [version - ticket.version for ticket in tickets]
        tallied = self._tallies.add(
            [((t.actor, t.life), p.metrics) for t, p in zip(tickets, parcels, strict=True)]
        )
        summary = {
            **self.episodes.summary(),
            **tallied,
            **(self._curriculum.metrics() if self._curriculum.active else {}),
            **(self._archive.metrics() if self.config.archive_share else {}),
            **(self._ways.metrics() if self.config.practises_ways else {}),
            "lag_p50": float(statistics.median(lags)),
            "lag_max": max(lags),
            "actors_present": crew.queue.present,
            "actors_lost": crew.losses,
            "rollouts_lost": crew.queue.lost,
        }
        rollout = self._landing.put(parcels)
        oldest = min(ticket.version for ticket in tickets)
        return Collected(rollout, oldest, mean_owners(parcels), self.episodes.take(), summary)

    def _told(self) -> Told:
        told = self._archive.told(self._curriculum, ray.put)
        return told._replace(ways=self._ways.told(ray.put)) if self.config.practises_ways else told

    # --- checkpoints ----------------------------------------------------------------------------
    def state_dict(self, *, lanes: bool = True) -> dict[str, Any]:
        """As one process with all lanes would save it; what differs between actors is beside it.
        Rollouts that have arrived and were not learned from are left out, and so are the lanes of
        an actor that is being replaced."""
        try:
            parts, waiting = self._begun().states(self._told(), lanes=lanes)
            known = next((part for part in parts if part is not None), None)
            if known is None:
                raise FleetError("no actor is there")
        except FleetError:
            if lanes:
                raise
            # Without the actors there are their statistics only.
            sampling = generator(self.config.seed, "actions").get_state()
            return {"sampling": sampling, "episodes": self.episodes.state_dict()}
        whole = {**known, "episodes": self.episodes.state_dict()}
        whole["guide"] = {
            **known["guide"],
            "curriculum": self._curriculum.state_dict(),
            "archive": self._archive.saved(
                [part["guide"]["archive"] for part in parts if part is not None]
            ),
            "ways": self._ways.state_dict(),
        }
        if lanes:
            missing = {**own_lanes(known), "lanes": pack([b""] * self.groups[0].count)}
            whole = joined(whole, [missing if part is None else own_lanes(part) for part in parts])
        fleet = {
            "token": self._token,
            "waiting": waiting,
            "actors": [{name: (part or known)[name] for name in OWN} for part in parts],
        }
        return {**whole, "fleet": fleet}

    def load_state_dict(self, state: Mapping[str, Any]) -> str:
        """Restores a saved state of actors or of one process. Returns why games start again, if
        they do. Actors that are still there go on with theirs, unless they take turns with the
        learner: then a resumed run repeats what the first one did."""
        whole = dict(state)
        fleet = whole.pop("fleet", {})
        self._token = str(fleet.get("token", self._token))
        sums = {name: [0] * self.config.num_envs for name in ("returns", "steps")}
        self.episodes.load_state_dict({**state["episodes"], **sums})
        if "guide" in state:
            self._curriculum.load_state_dict(state["guide"]["curriculum"])
            if self.config.archive_share:
                self._archive.load_state_dict(state["guide"]["archive"])
            if self.config.practises_ways and "ways" in state["guide"]:
                self._ways.load_state_dict(state["guide"]["ways"])
        crew = self._make_crew()
        reason = ""
        if crew.found == self.config.actors and self.config.max_lag:
            self.notes.append(
                f"all {crew.found} actors are still there, and go on with their games"
            )
        else:
            reason = self._deal(crew, whole, fleet)
        if waiting := int(fleet.get("waiting", 0)):
            self.notes.append(f"rollouts that actors had sent ahead are left out: {waiting}")
        crew.serve()
        return reason

    def _deal(self, crew: Crew, whole: dict[str, Any], fleet: Mapping[str, Any]) -> str:
        count = self.config.actors
        own = list(fleet.get("actors", []))
        if len(own) not in (0, count):
            self.notes.append(f"the lanes of {len(own)} actors are dealt anew to {count}")
        own = own if len(own) == count else [{}] * count
        reasons = [reason for reason in crew.load(whole, own) if reason]
        if any(ARCHIVE_EMPTY in reason for reason in reasons):
            self._archive.clear()
        if 0 < len(reasons) < count:
            again = f"the games of {len(reasons)} of {count} actors start again"
            self.notes.append(f"{again}: {reasons[0]}")
            return ""
        return reasons[0] if reasons else ""
