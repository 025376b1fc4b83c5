"""Where trials begin: places on paths that failed; and what has worked elsewhere."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from warpzone.teach.lessons import Step

Key = tuple[int, ...]
#: How much less likely a path is drawn for each detour on it. What is taught is to differ little
#: from what the agent does.
EACH_DETOUR = 0.5
EACH_DETOUR_PATIENT = 0.85
#: How much more likely one that has come further is drawn: its share of the most ground, to this
#: power.
FURTHER = 3
FURTHER_PATIENT = 4
#: Trials begin so many steps before the end of a path, on average: an episode is mostly lost
#: shortly before it ends. This share of them begins anywhere. In a maze the wrong turn may lie far
#: behind: the average of a patient trial is anything between these.
BACK = 25.0
BACK_PATIENT = (8.0, 250.0)
ANYWHERE = 0.2
#: So near to the end of a path all places are kept, further away every so manyth: a place takes
#: some 40 KiB.
NEARLY = 120
SPARSE = 8
#: Paths that are kept for a start.
MOST_PATHS = 12
MOST_PATHS_PATIENT = 24
#: Detours that are kept for a place, and ways for a stage; the oldest go.
MOST_DETOURS = 12
MOST_WAYS = 40
#: Places of ways that are kept for a place, and the steps that a trial goes along one of them.
MOST_JOINED = 8
ALONG = (4, 240)
#: A known detour is taken near the end of a path: the chance falls by e in so many steps.
NEAR = 40.0
FAR_CHANCE = 0.02


@dataclass(slots=True, eq=False)
class Place:
    """A lane between two steps, and how it came there: from another place, or from the door."""

    key: Key
    state: bytes
    frames: tuple[NDArray[np.uint8], ...]
    #: What the agent remembers there, for one lane; None at a door, where it begins anew.
    memory: tuple[Tensor, ...] | None
    previous_action: int
    #: Lives that are left.
    lives: int = 0
    before: Place | None = None
    #: Steps from the place before: the first of a list that may grow, and is shared by all places
    #: of an attempt.
    trail: Sequence[Step] = ()
    length: int = 0
    #: Steps from the door, and times that a trial chose actions on the way.
    depth: int = 0
    detours: int = 0

    @classmethod
    def door(
        cls, key: Key, state: bytes, first: NDArray[np.uint8], stack: int, lives: int
    ) -> Place:
        """Where the agent begins anew, as in `Policy.begin`. first: what is seen there."""
        return cls(key, state, (first,) * stack, None, 0, lives)

    @property
    def steps(self) -> Sequence[Step]:
        """The steps from the place before."""
        return self.trail[: self.length]

    def come_from(self, place: Place, steps: Sequence[Step], detours: int) -> None:
        """These steps from another place led here."""
        self.before, self.trail, self.length = place, steps, len(steps)
        self.depth, self.detours = place.depth + len(steps), detours

    def chain(self) -> list[Place]:
        """The places that led here, the door first and this one last."""
        found = [self]
        while found[-1].before is not None:
            found.append(found[-1].before)
        return found[::-1]

    def path(self, steps: Sequence[Step]) -> list[Step]:
        """All steps from the door to here, and then these."""
        return [step for place in self.chain() for step in place.steps] + list(steps)


class Path:
    """An episode that did not reach the flag."""

    def __init__(self, places: Sequence[Place], end: int, detours: int) -> None:
        """places: from the door on. end: its steps from the door."""
        self.places = [
            place
            for index, place in enumerate(places)
            if index % SPARSE == 0 or place.depth >= end - NEARLY
        ]
        self.end = end
        self.detours = detours
        self.tries = 0
        #: How many different places it has seen.
        self.ground = len({place.key for place in places})
        self._depths = np.array([place.depth for place in self.places])

    def place(self, depth: float) -> Place:
        """The first place that is at least so many steps from the door, or the last one."""
        index = int(np.searchsorted(self._depths, depth))
        return self.places[min(index, len(self.places) - 1)]

    def draw(self, random: np.random.Generator, patient: bool = False) -> Place:
        """A place to try from, mostly shortly before the end."""
        if random.random() < ANYWHERE:
            return self.place(random.uniform(0.0, self.end))
        back = log_uniform(random, *BACK_PATIENT) if patient else BACK
        return self.place(self.end - random.exponential(back) - 2.0)


def log_uniform(random: np.random.Generator, least: float, most: float) -> float:
    """Small numbers are drawn more often than large ones, whatever the scale."""
    return math.exp(random.uniform(math.log(least), math.log(most)))


class Paths:
    """Those of one start delay."""

    def __init__(self) -> None:
        self.kept: list[Path] = []
        #: Whether a long way is to be found, by many detours one after the other: then the one that
        #: came furthest is gone on with, rather than the one with the fewest.
        self.patient = False

    def add(self, path: Path) -> None:
        """One more; when there are too many, the one that is drawn least often goes."""
        self.kept.append(path)
        if len(self.kept) > (MOST_PATHS_PATIENT if self.patient else MOST_PATHS):
            self.kept.pop(int(np.argmin(self.weights())))

    def weights(self) -> NDArray[np.float64]:
        """How likely each is drawn: it came far with few detours, and was seldom tried."""
        each_detour = EACH_DETOUR_PATIENT if self.patient else EACH_DETOUR
        power = FURTHER_PATIENT if self.patient else FURTHER
        furthest = max(path.ground for path in self.kept)
        return np.array(
            [
                each_detour**path.detours
                * (path.ground / furthest) ** power
                / math.sqrt(path.tries + 1.0)
                for path in self.kept
            ]
        )

    def draw(self, random: np.random.Generator) -> Path:
        """One to try from."""
        weights = self.weights()
        path = self.kept[random.choice(len(weights), p=weights / weights.sum())]
        path.tries += 1
        return path


class Known:
    """What led to the flag of one stage: detours by the place where they began, and whole ways.
    What was worth it from one start delay mostly is from others."""

    def __init__(self) -> None:
        self._detours: dict[Key, deque[list[int]]] = {}
        #: Ways by the places that they come by, and their steps up to there.
        self._joined: dict[Key, deque[tuple[list[int], int]]] = {}
        self._ways: deque[tuple[int, list[int]]] = deque(maxlen=MOST_WAYS)

    def __len__(self) -> int:
        return sum(map(len, self._detours.values()))

    def add(
        self, start_delay: int, place: Place, steps: Sequence[Step], places: Sequence[Place] = ()
    ) -> None:
        """An episode that has reached the flag: the path to a place, and the steps from there;
        places: those that it came by on these."""
        way = [step.action for step in place.path(steps)]
        self._ways.append((start_delay, way))
        for one in (*place.chain(), *places):
            self.meet(way, one.key, one.depth)
        parts = [(one.before, one.steps) for one in place.chain()]
        for begun, part in [*parts, (place, steps)]:
            shown = [index for index, step in enumerate(part) if step.shown]
            if begun is None or not shown:
                continue
            actions = [step.action for step in part[: shown[-1] + 1]]
            kept = self._detours.setdefault(begun.key, deque(maxlen=MOST_DETOURS))
            if actions not in kept:
                kept.append(actions)

    def add_way(self, start_delay: int, actions: Sequence[int]) -> None:
        """A way that a search found."""
        self._ways.append((start_delay, list(actions)))

    def meet(self, way: list[int], key: Key, depth: int) -> None:
        """The way comes by this place after so many steps; trials that do as well can go along."""
        self._joined.setdefault(key, deque(maxlen=MOST_JOINED)).append((way, depth))

    @property
    def whole(self) -> list[tuple[int, list[int]]]:
        """All ways with their start delays, in the order in which they were found."""
        return list(self._ways)

    def ways(self, start_delay: int) -> list[list[int]]:
        """All ways: the newest, then those of similar start delays. What is found for one start
        delay where all others fail is tried by them at once."""
        *older, newest = self._ways or [(0, [])]
        older.sort(key=lambda one: abs(one[0] - start_delay))
        return [way for _, way in (newest, *older) if way]

    def join(self, path: Path, random: np.random.Generator) -> tuple[Place, list[int]] | None:
        """Some steps of a way that comes by a place of the path, mostly near its end; None if none
        does. Enemies are elsewhere there, and pipes and platforms are where they are."""
        found = [place for place in path.places if place.key in self._joined]
        if not found:
            return None
        before = np.array([path.end - place.depth for place in found])
        weights = np.exp(-before / NEAR) + FAR_CHANCE
        place = found[random.choice(len(found), p=weights / weights.sum())]
        ways = self._joined[place.key]
        way, depth = ways[int(random.integers(len(ways)))]
        return place, way[depth : depth + round(log_uniform(random, *ALONG))]

    def draw(self, path: Path, random: np.random.Generator) -> tuple[Place, list[int]] | None:
        """A detour from a place of the path, mostly near its end and mostly whole; None if there
        is none."""
        found = [
            (place, actions)
            for place in path.places
            for actions in self._detours.get(place.key, ())
        ]
        if not found:
            return None
        before = np.array([path.end - place.depth for place, _ in found])
        weights = np.exp(-before / NEAR) + FAR_CHANCE
        place, actions = found[random.choice(len(found), p=weights / weights.sum())]
        if random.random() < 0.3:
            actions = actions[: int(random.integers(1, len(actions) + 1))]
        return place, actions
