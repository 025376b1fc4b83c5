"""The archive of a fleet. The learner keeps it and counts the episodes of all actors. An actor has
a copy, looks for moments in its own lanes, and sends those that lasted with its rollout."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone.collect.archive import MOST_SAVED, RENEWAL, Archive, Key, Lasted, Moment
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import LaneGroup
from warpzone.collect.packing import pack, unpack
from warpzone.collect.ranks import Ranks
from warpzone.config import TrainConfig
from warpzone.dist.parcels import Parcel
from warpzone.dist.practice import ToldWays

#: Of a saved archive: what is about lanes, and what is about moments.
CANDIDATES = ("candidates", "candidate_states")
MOMENTS = ("numbers", "keys", "states", "masks")


class Told(NamedTuple):
    """What actors get of curriculum, archive and ways with the weights."""

    curriculum: Mapping[str, Any]
    #: Which learner keeps the archive: one that was resumed gives numbers anew.
    learner: str
    #: Number, attempts, gains and clears of each moment, in the archive's order.
    counts: Sequence[tuple[int, int, int, int]]
    #: References to what never changes of them, by number: key, state, masks and x.
    bodies: Mapping[int, Any]
    #: How often each action was pressed of late.
    pressed: Sequence[float]
    #: None without searches.
    ways: ToldWays | None = None


class LearnersArchive(Archive):
    """The moments of all actors."""

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config)
        self._bodies: dict[int, Any] = {}
        self._learner = secrets.token_hex(8)

    def take(self, parcels: Sequence[Parcel], ended: Sequence[Episode]) -> None:
        """After the rollouts of an update. Of moments of one place the first is kept, and none
        takes the place of one that was found meanwhile."""
        self.learn(ended)
        first = [parcel.arrays["actions"][: self.config.frame_stack] for parcel in parcels]
        self.count(np.concatenate(first, 1))
        new: dict[Key, Lasted] = {}
        for lasted in (one for parcel in parcels for one in parcel.lasted):
            known = self._places.get(lasted.found.key)
            if known is None or self.moments[known].attempts >= RENEWAL:
                new.setdefault(lasted.found.key, lasted)
        self.keep(list(new.values()))

    def told(self, curriculum: Curriculum, put: Callable[[Any], Any]) -> Told:
        """For actors. put: makes a reference that they can get."""
        self._bodies = {
            number: self._bodies[number]
            if number in self._bodies
            else put((one.key, one.state, one.masks, one.x))
            for number, one in self.moments.items()
        }
        counts = [(m.number, m.attempts, m.gains, m.clears) for m in self.moments.values()]
        return Told(
            curriculum.state_dict(), self._learner, counts, self._bodies, self._counts.tolist()
        )

    def saved(self, actors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """As one process would save it, with the candidates in the lanes of all actors."""
        found: dict[Key, tuple[list[int], bytes]] = {}
        for one in actors:
            for row, state in zip(one["candidates"], unpack(one["candidate_states"]), strict=True):
                found.setdefault(tuple(row[3:]), (row, state))
        kept = list(found.values())[:MOST_SAVED]
        candidates = [row for row, _ in kept], pack([state for _, state in kept])
        return {**self.state_dict(), **dict(zip(CANDIDATES, candidates, strict=True))}

    def load_state_dict(self, state: Mapping[str, Any], *, anew: bool = False) -> None:
        """Restores `state_dict`; the candidates are the actors'."""
        super().load_state_dict(state, anew=anew)
        self._candidates = []


class ActorsArchive(Archive):
    """An actor's copy."""

    def __init__(self, config: TrainConfig, ranks: Ranks) -> None:
        super().__init__(config, ranks)
        self._own = ranks.lanes(config.num_envs)
        self._learner = ""
        #: Whether lanes have been played since it last looked for candidates.
        self._due = False
        #: Moments that the last rollout has found.
        self.lasted: list[Lasted] = []

    def learn(self, ended: Any) -> None:
        """The learner counts."""

    def look(
        self,
        groups: Sequence[LaneGroup],
        ages: NDArray[np.int64],
        actions: NDArray[np.int64],
        ended: Sequence[Episode],
    ) -> None:
        """After a rollout. It looks for new candidates when it knows what the learner knows."""
        self.count(actions)
        self.lasted = self.lasting(self._wide(ages), self._wide(actions), ended)
        self._candidates, self._due = [], True

    def follow(
        self,
        told: Told,
        get: Callable[[list[Any]], list[Any]],
        groups: Sequence[LaneGroup],
        ages: NDArray[np.int64],
    ) -> None:
        """Before a rollout or a checkpoint: the learner's moments, and then candidates in the lanes
        as the last rollout left them. get: what references refer to."""
        if told.learner != self._learner:
            self.clear_moments()
            self.apply(groups)
            self._learner = told.learner
        before = self.moments
        missing = [number for number, *_ in told.counts if number not in before]
        bodies = dict(zip(missing, get([told.bodies[n] for n in missing]), strict=True))
        self.moments = {}
        for number, *counts in told.counts:
            old = before.get(number)
            body = bodies[number] if old is None else (old.key, old.state, old.masks, old.x)
            self.moments[number] = Moment(number, *body, *counts)
            if old is not None and old.weight != self.moments[number].weight:
                self._changed.add(number)
        self._places = {moment.key: number for number, moment in self.moments.items()}
        self._counts = np.array(told.pressed)
        if self._due:
            self._candidates, self._due = self._find(groups, self._wide(ages)), False

    def _wide(self, own: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of this actor's lanes at the places that the lanes have in the run."""
        whole = np.zeros((*own.shape[:-1], self.config.num_envs), np.int64)
        whole[..., self._own] = own
        return whole

    def state_dict(self) -> dict[str, Any]:
        """Its candidates; the moments are the learner's."""
        nothing = Archive(self.config).state_dict()
        return {**super().state_dict(), **{name: nothing[name] for name in MOMENTS}}

    def load_state_dict(self, state: Mapping[str, Any], *, anew: bool = False) -> None:
        """Restores what a checkpoint has of its lanes."""
        super().load_state_dict(state, anew=anew)
        lanes = range(self._own.start, self._own.stop)
        self._candidates = [one for one in self._candidates if one.lane in lanes]
        self._learner, self._due = "", False


def guide_of(whole: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The guide's state for an actor: its own, with the moments of all."""
    guide = {**whole, **own}
    if "archive" in whole and "archive" in own:
        candidates = {name: own["archive"][name] for name in CANDIDATES}
        guide["archive"] = {**whole["archive"], **candidates}
    return guide
