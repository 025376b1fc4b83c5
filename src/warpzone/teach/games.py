"""Explores whole games: every stage of a game is a task, which begins as the one before has ended.

In a game Mario comes to a stage big or small; after a lost life he begins it again, at its start or
halfway. An agent that has only played single stages has seen none of that. It begins every task
anew, with an empty memory, as it does in games of an evaluation; one that was trained on whole
games goes on with what it remembers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from warpzone.env.infos import COLUMN
from warpzone.env.stages import LONGEST_DELAY
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes, Landing
from warpzone.eval.whole_game import STEP_LIMIT, STUCK_AFTER, is_over, remembers, stages_of
from warpzone.teach.explorer import Explorer
from warpzone.teach.places import Place
from warpzone.teach.tasks import Attempt, Start


class GameExplorer(Explorer):
    """Starts are games: their stage is the first one, and tasks for later ones are added when these
    are reached. A task without a lesson ends its game."""

    #: Games that were played to their end.
    won = 0

    def _lanes(self, starts: Sequence[Start]) -> EvalLanes:
        return EvalLanes(
            self._config,
            self._rom,
            self._native,
            [Case(-1, "argmax", start.start_delay) for start in starts],
            delays=(0, LONGEST_DELAY),
            end="game_over",
            time_limit=STEP_LIMIT,
            stagnation_limit=STUCK_AFTER,
        )

    def _judge(self, attempt: Attempt, landing: Landing, row: int) -> bool | None:
        info = landing.info[row]
        if landing.terminated[row]:
            return not is_over(info)
        if landing.truncated[row] or info[COLUMN["life"]] < attempt.lives:
            return False
        left = stages_of(landing.info)[row] > attempt.order.task.start.stage
        return True if left else None

    def _go_on(
        self, attempt: Attempt, reached: bool, place: Place | None, info: NDArray[np.int32]
    ) -> None:
        """The next stage follows, or the same one with a life less. What comes behind the latter is
        not explored, or there would be twice as many games after each stage."""
        task = attempt.order.task
        if not task.leads_on:
            return
        if place is not None and not remembers(self._config):
            stack = len(place.frames)
            place = Place.door(place.key, place.state, place.frames[-1], stack, place.lives)
        if reached and task.found == 1:
            if place is None:
                self.won += 1
            else:
                self._add(task.start._replace(stage=int(stages_of(info[None])[0])), place)
        elif not reached and attempt.order.alone and place is not None:
            self._add(task.start, place, leads_on=False)
