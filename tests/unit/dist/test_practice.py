"""The ways that the learner keeps, and the copies that actors have of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny_runs import tiny

from warpzone.collect import ways
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.practice import Practice, Spot
from warpzone.collect.search import Way
from warpzone.collect.ways import FIRST_PLACE
from warpzone.dist.practice import ActorsWays, LearnersWays, ToldWays

CONFIG = tiny(archive_share=0.5, search_steps=1000, actors=2, algo="vtrace", stages="1-1,1-2")


def practice(stage: int, first: int, mark: bytes) -> Practice:
    return Practice(Way(stage, 3, [1] * 13), first, [Spot(mark, b"")] * 3, np.zeros(3), np.zeros(3))


def learner() -> LearnersWays:
    made = LearnersWays(CONFIG, b"", None)
    made.practices[FIRST_PLACE] = practice(0, FIRST_PLACE, b"one")
    made._next = FIRST_PLACE + 3
    return made


class Group:
    """Restart points as an engine has them."""

    def __init__(self) -> None:
        self.vector = self
        self.points: dict[int, tuple[bytes, float]] = {}

    def add_restart(self, number: int, state: bytes, masks: bytes, weight: float) -> None:
        assert number not in self.points
        self.points[number] = state, weight

    def weigh_restart(self, number: int, weight: float) -> None:
        self.points[number] = self.points[number][0], weight

    def remove_restart(self, number: int) -> None:
        del self.points[number]


#: Clear rates from the start of each stage: one that half of the episodes clear, and none.
LEARNED, NEW = np.full(32, 0.5), np.zeros(32)


def follow(
    actor: ActorsWays, told: ToldWays, group: Group, asked: list[int], rates: Any = LEARNED
) -> None:
    def get(references: list[Any]) -> list[Any]:
        asked.append(len(references))
        return [body for (body,) in references]

    groups: Any = [group]
    actor.follow(told, get, groups)
    actor.apply(groups, {}, rates)


def told_of(made: LearnersWays) -> ToldWays:
    return made.told(lambda body: [body])


def require_same(actor: ActorsWays, made: LearnersWays) -> None:
    assert list(actor.practices) == list(made.practices)
    for first, mine in actor.practices.items():
        yours = made.practices[first]
        assert (mine.way, mine.first, mine.places) == (yours.way, yours.first, yours.places)
        assert mine.attempts.tolist() == yours.attempts.tolist()
        assert mine.clears.tolist() == yours.clears.tolist()


def test_an_actor_practises_the_learners_ways() -> None:
    made, actor, group, asked = learner(), ActorsWays(CONFIG, b"", None), Group(), list[int]()
    before = told_of(made)
    follow(actor, before, group, asked)
    require_same(actor, made)
    assert sorted(group.points) == [FIRST_PLACE, FIRST_PLACE + 1, FIRST_PLACE + 2]
    made.practices[FIRST_PLACE + 3] = practice(1, FIRST_PLACE + 3, b"two")
    made._next = FIRST_PLACE + 6
    made.learn([Episode(0, 0, 0, 0.0, 10, 0, "death", FIRST_PLACE + 1)] * 40)
    # What was told does not change while it is on its way.
    assert before.practices[0][1].sum() == 0.0
    follow(actor, told_of(made), group, asked)
    require_same(actor, made)
    # Only the way that is new was sent for, and the engine has the new weights.
    assert asked == [1, 1]
    assert len(group.points) == 6
    assert group.points[FIRST_PLACE][1] < group.points[FIRST_PLACE + 3][1]
    # What leads to a place is shown where the policy fails; here it all begins at the start.
    numbers = np.arange(FIRST_PLACE, FIRST_PLACE + 7, dtype=np.int32)
    made.apply([], {}, LEARNED)
    assert actor.teaches(numbers).tolist() == made.teaches(numbers).tolist()
    assert not made.teaches(numbers).any()
    follow(actor, told_of(made), group, asked, NEW)
    assert actor.teaches(numbers).tolist() == [True] * 6 + [False]
    del made.practices[FIRST_PLACE]
    follow(actor, told_of(made), group, asked)
    assert sorted(group.points) == [FIRST_PLACE + 3, FIRST_PLACE + 4, FIRST_PLACE + 5]


def test_the_numbers_of_a_resumed_learner_are_others() -> None:
    actor, group = ActorsWays(CONFIG, b"", None), Group()
    follow(actor, told_of(learner()), group, [])
    other = learner()
    other.practices[FIRST_PLACE] = practice(0, FIRST_PLACE, b"other")
    follow(actor, told_of(other), group, [])
    require_same(actor, other)
    assert {state for state, _ in group.points.values()} == {b"other"}


def test_an_actor_neither_searches_nor_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def nothing(*_: Any, stage: int, **__: Any) -> tuple[None, int]:
        searched.append(stage)
        return None, 7

    monkeypatch.setattr(ways, "find_way", nothing)
    made, actor = learner(), ActorsWays(CONFIG, b"", None)
    follow(actor, told_of(made), Group(), [])
    curriculum = Curriculum(CONFIG)
    curriculum.episodes[:2] = ways.EPISODES
    ended = [Episode(0, 0, 0, 0.0, 10, 0, "death", FIRST_PLACE)]
    chances = np.full(2, 0.5)
    for one in (actor, made):
        one.learn(ended)
        one.look(curriculum, chances)
    assert searched == [1]
    assert made.searched_steps == 7
    assert actor.practices[FIRST_PLACE].attempts.sum() == actor.searched_steps == 0
    assert made.practices[FIRST_PLACE].attempts[0] == 1.0


def test_a_checkpoint_has_the_ways_once() -> None:
    actor = ActorsWays(CONFIG, b"", None)
    group = Group()
    made = learner()
    follow(actor, told_of(made), group, [])
    saved = actor.state_dict()
    assert saved["ways"] == saved["first"] == saved["counts"] == []
    # A way that the checkpoint has is the learner's to tell.
    actor.load_state_dict(made.state_dict())
    follow(actor, told_of(made), group, [])
    require_same(actor, made)
