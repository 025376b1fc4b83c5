"""Starts that are explored: what is to be done next, what a lane is doing, what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from warpzone.teach.lessons import Lesson, Step
from warpzone.teach.places import Key, Paths, Place

#: The first trials let the agent draw its actions: what it finds likely is easier to teach than any
#: buttons, and mostly is enough.
GENTLE_TRIALS = 14
#: How many times as many steps a pioneer gets.
PATIENCE = 60
#: A lesson is looked for that is cheaper than the first, for the length of so many.
LESSONS_MORE = 6


class Start(NamedTuple):
    """An episode to explore."""

    stage: int
    start_delay: int
    #: Whether the agent draws its actions when it plays alone, which leads to other places than the
    #: likeliest ones do. Trials go on with the likeliest all the same.
    drawn: bool = False
    #: Whether trials look for the flag where the agent fails alone.
    tried: bool = True


@dataclass(eq=False)
class Task:
    """A start, and what came of it so far."""

    start: Start
    door: Place
    #: Whether the rest of a game is explored behind its goal.
    leads_on: bool = True
    #: How many times as many steps it gets as a pioneer.
    patience: int = PATIENCE
    paths: Paths = field(default_factory=Paths)
    seen: set[Key] = field(default_factory=set)
    #: Whether the agent has begun to play alone, and whether it reached the flag; None: not yet
    #: known.
    begun: bool = False
    cleared_alone: bool | None = None
    trials: int = 0
    ways_tried: int = 0
    steps: int = 0
    #: Episodes that reached the flag, the steps before the first of them, and the one that is
    #: nearest to what the agent does.
    found: int = 0
    steps_to_first: int = 0
    lesson: Lesson | None = None
    cost: float = float("inf")
    #: Enough is found; what is still being done is of no use.
    over: bool = False
    #: Nothing more begins, so no places are kept.
    closed: bool = False
    #: It is one of the few of a stage that get many more steps; see `Explorer`.
    pioneer: bool = False
    #: It has got its steps before, and found nothing.
    again: bool = False

    def most_steps(self, most: int, more: int) -> int:
        """Steps after which nothing more is tried: `most`, for pioneers many times as many. After
        the flag was first reached so many more are enough, or as many as that took, or as some
        lessons have."""
        most *= self.patience if self.pioneer else 1
        if self.lesson is None:
            return most
        more = max(more, self.steps_to_first, LESSONS_MORE * self.lesson.length)
        return min(most, self.steps_to_first + more)

    def begin_again(self) -> None:
        """Something new is known about its stage, which the next trials are to try."""
        self.again = True
        self.over = self.begun = self.closed = self.pioneer = False
        self.steps = self.ways_tried = 0
        self.trials = GENTLE_TRIALS

    def become_pioneer(self) -> None:
        """It gets many more steps."""
        self.pioneer = self.paths.patient = True

    def close(self) -> None:
        """Nothing more is to begin; what is under way goes on."""
        self.closed = True
        self.paths, self.seen = Paths(), set()


class Order(NamedTuple):
    """What a lane is to do next."""

    task: Task
    place: Place
    #: Actions to begin with, whatever the agent would do.
    forced: Sequence[int] = ()
    #: Steps after these for which the agent draws its actions; then it takes the likeliest.
    drawn: int = 0
    temperature: float = 1.0
    #: Whether the agent plays all of it, from the door.
    alone: bool = False


@dataclass
class Attempt:
    """What a lane is doing."""

    order: Order
    frames: tuple[NDArray[np.uint8], ...]
    lives: int = 0
    steps: list[Step] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    #: Places that nobody had been to, and steps since the last of them.
    news: int = 0
    stale: int = 0

    @property
    def detours(self) -> int:
        """Detours on the way to where it is."""
        return self.order.place.detours + (not self.order.alone)

    @property
    def depth(self) -> int:
        """Steps from the door."""
        return self.order.place.depth + len(self.steps)

    def here(self, key: Key, state: bytes, memory: tuple[Tensor, ...]) -> Place:
        """Where it is, as if it had begun there."""
        previous = self.steps[-1].action
        return Place(key, state, self.frames, memory, previous, self.lives)

    @property
    def on_detour(self) -> bool:
        """Whether its next action is not just what the agent does."""
        return len(self.steps) < len(self.order.forced) + self.order.drawn


class Findings(NamedTuple):
    """What came out."""

    lessons: list[Lesson]
    #: Starts that the agent played alone, and whether it reached the flag.
    alone: list[tuple[Start, bool]]
    #: Those for which no lesson was found.
    left: list[Start]
    #: Steps with the network, and of searches without it.
    steps: int
    searched_steps: int
