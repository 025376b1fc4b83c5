"""The ways of a fleet. The learner searches for them and counts the attempts of all actors, as it
does with the archive. An actor has copies, and begins episodes along them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.lanes import LaneGroup
from warpzone.collect.practice import Practice
from warpzone.collect.ways import Ways
from warpzone.config import TrainConfig
from warpzone.env.stages import NUM_STAGES

Floats = NDArray[np.float64]


class ToldWays(NamedTuple):
    """What actors get of the ways with the weights."""

    #: Which learner has searched: one that was resumed gives numbers anew.
    learner: str
    #: Of each way: the number of its first place, attempts and clears by place, and a reference to
    #: what never changes of it, which is the way and its places.
    practices: Sequence[tuple[int, Floats, Floats, Any]]
    #: The number of the next place.
    following: int


class LearnersWays(Ways):
    """The ways that all actors practise."""

    def __init__(
        self, config: TrainConfig, rom: bytes, native: _engine.NativeProgram | None
    ) -> None:
        super().__init__(config, rom, native)
        self._bodies: dict[int, Any] = {}
        self._learner = secrets.token_hex(8)

    def told(self, put: Callable[[Any], Any]) -> ToldWays:
        """For actors. put: makes a reference that they can get. Places travel too: an actor would
        have to play the way to find them."""
        practices = list(self.practices.values())
        self._bodies = {
            one.first: self._bodies[one.first]
            if one.first in self._bodies
            else put((one.way, one.places))
            for one in practices
        }
        told = [
            (p.first, p.attempts.copy(), p.clears.copy(), self._bodies[p.first]) for p in practices
        ]
        return ToldWays(self._learner, told, self._next)


class ActorsWays(Ways):
    """An actor's copies."""

    def __init__(
        self, config: TrainConfig, rom: bytes, native: _engine.NativeProgram | None
    ) -> None:
        super().__init__(config, rom, native)
        self._learner = ""

    def learn(self, ended: Iterable[Episode]) -> None:
        """The learner counts."""

    def look(self, curriculum: Curriculum, chances: Floats) -> None:
        """The learner searches."""

    def follow(
        self, told: ToldWays, get: Callable[[list[Any]], list[Any]], groups: Sequence[LaneGroup]
    ) -> None:
        """Before a rollout: the learner's ways. get: what references refer to."""
        if told.learner != self._learner:
            self.practices = {}
            self.apply(groups, {}, np.zeros(NUM_STAGES))
            self._learner = told.learner
        known = {one.first: (one.way, one.places) for one in self.practices.values()}
        missing = {first: body for first, _, _, body in told.practices if first not in known}
        known |= dict(zip(missing, get(list(missing.values())), strict=True))
        self.practices = {}
        for first, attempts, clears, _ in told.practices:
            way, places = known[first]
            self.practices[first] = Practice(way, first, places, attempts, clears)
        self._next = told.following

    def state_dict(self) -> dict[str, Any]:
        """Nothing: the ways are the learner's."""
        return Ways(self.config, self._rom, self._native).state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The learner has them, and tells."""
        self._learner = ""
