"""What a trial does: where it begins, and what it does there instead of what the agent does."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from warpzone.teach.places import Known, Place, log_uniform
from warpzone.teach.tasks import GENTLE_TRIALS, Order, Task

#: Whole ways of other start delays that are tried, after the gentle trials.
MOST_WAYS_TRIED = 4
#: Of the trials after these, those that go the first part of such a way: the rest is left to the
#: agent, so that less has to be shown.
CUT_SHARE = 0.1
CUT_SHARE_FOUND = 0.3
#: Of the others, those with a detour that is known from elsewhere, those that go along a way from
#: where it meets their path, and those in which the agent draws; the others press any buttons.
#: Where something has been found, more of them are gentle: something nearer to the agent is looked
#: for.
KNOWN_SHARE = 0.3
JOINED_SHARE = 0.1
DRAWN_SHARE = 0.3
DRAWN_SHARE_FOUND = 0.6
#: Steps for which actions are drawn, short ones more often, and temperatures.
DRAWN = (2, 60)
TEMPERATURES = (0.7, 1.0, 1.5, 2.5)
#: Steps of a detour of any buttons, short ones more often, and for which each button is held.
DETOUR = (2, 48)
HOLDING = (1, 14)


class Trials:
    """Draws orders."""

    def __init__(
        self, actions: int, known: Mapping[int, Known], random: np.random.Generator
    ) -> None:
        """known: by stage; what is added to it is tried."""
        self._actions = actions
        self._known = known
        self._random = random

    def draw(self, task: Task) -> Order:
        """A trial of a task in which the agent has failed alone."""
        known, random = self._known[task.start.stage], self._random
        task.trials += 1
        gentle = task.trials <= GENTLE_TRIALS
        ways = [] if gentle else known.ways(task.start.start_delay)[:MOST_WAYS_TRIED]
        if not task.found and task.ways_tried < len(ways):
            task.ways_tried += 1
            return Order(task, task.door, ways[task.ways_tried - 1])
        if ways and random.random() < (CUT_SHARE_FOUND if task.found else CUT_SHARE):
            way = ways[int(random.integers(len(ways)))]
            return Order(task, task.door, way[: int(random.integers(1, len(way) + 1))])
        path = task.paths.draw(random)
        chance = random.random()
        place = path.draw(random, task.paths.patient)
        if gentle or (task.found and chance < DRAWN_SHARE_FOUND):
            return self._gentle(task, place)
        if chance < KNOWN_SHARE and (taken := known.draw(path, random)):
            return Order(task, *taken)
        if chance > 1.0 - JOINED_SHARE and (taken := known.join(path, random)):
            return Order(task, *taken)
        if chance < KNOWN_SHARE + DRAWN_SHARE:
            return self._gentle(task, place)
        return Order(task, place, self._any_buttons())

    def _gentle(self, task: Task, place: Place) -> Order:
        steps = self._length(*DRAWN)
        return Order(task, place, drawn=steps, temperature=float(self._random.choice(TEMPERATURES)))

    def _any_buttons(self) -> list[int]:
        length = self._length(*DETOUR)
        actions: list[int] = []
        while len(actions) < length:
            action = int(self._random.integers(self._actions))
            actions += [action] * int(self._random.integers(*HOLDING))
        return actions[:length]

    def _length(self, shortest: int, longest: int) -> int:
        return round(log_uniform(self._random, shortest, longest))
