"""The archive that the learner keeps, and the copies that actors have of it."""

from typing import Any

import numpy as np
from tiny_runs import tiny

from warpzone.collect.archive import RENEWAL, Candidate, Lasted
from warpzone.collect.curriculum import Curriculum
from warpzone.collect.episodes import Episode
from warpzone.collect.packing import pack, unpack
from warpzone.dist.moments import ActorsArchive, LearnersArchive, Told, guide_of
from warpzone.dist.parcels import Parcel
from warpzone.dist.remote import Part
from warpzone.env.actions import action_table

CONFIG = tiny(archive_share=0.5, actors=2, algo="vtrace")


def lasted(place: int, state: bytes = b"state", lane: int = 0) -> Lasted:
    return Lasted(Candidate(lane, 9, (0, 0, 0, 0, 0, 0, place, 0), state, 16 * place), b"masks")


def parcel(*found: Lasted) -> Parcel:
    actions = {"actions": np.zeros((8, 2), np.int64)}
    return Parcel(actions, (), {}, [], {}, np.zeros((2, 1), np.int32), found)


def episode(restart: int, furthest_x: int = 0) -> Episode:
    return Episode(0, 0, 0, 0.0, 10, furthest_x, "death", restart)


def archive() -> LearnersArchive:
    """Two moments: the first of two actors who found the same place, and another."""
    made = LearnersArchive(CONFIG)
    made.take([parcel(lasted(1, b"first"), lasted(2)), parcel(lasted(1, b"second"))], [])
    return made


def told_of(made: LearnersArchive) -> Told:
    return made.told(Curriculum(CONFIG), lambda body: [body])


def follow(actor: ActorsArchive, told: Told, asked: list[int] | None = None) -> None:
    def get(references: list[Any]) -> list[Any]:
        if asked is not None:
            asked.append(len(references))
        return [body for (body,) in references]

    actor.follow(told, get, [], np.zeros(2, np.int64))


def test_a_place_is_kept_once_until_it_is_to_be_renewed() -> None:
    made = archive()
    assert {m.number: m.state for m in made.moments.values()} == {1: b"first", 2: b"state"}
    # An actor that had not heard of it has found it too.
    made.take([parcel(lasted(1, b"late")), parcel()], [episode(1)])
    assert made.moments[1].attempts == 1
    made.take([parcel(), parcel(lasted(1, b"new"))], [episode(1, 999)] * RENEWAL)
    assert [m.state for m in made.moments.values()] == [b"state", b"new"]
    assert made.metrics()["archive_episodes"] == RENEWAL + 1


def test_an_actor_has_the_learners_moments() -> None:
    made, asked = archive(), list[int]()
    actor = ActorsArchive(CONFIG, Part(1, 2))
    follow(actor, told_of(made), asked)
    assert actor.moments == made.moments
    assert list(actor.moments) == list(made.moments)
    made.take([parcel(lasted(3))], [episode(2), episode(2)])
    actor.apply([])
    follow(actor, told_of(made), asked)
    assert actor.moments == made.moments
    # Only what is new was sent for, and the engine is to hear of the weight that changed.
    assert asked == [2, 1]
    assert actor._changed == {2}
    assert actor.pressed.tolist() == made.pressed.tolist()
    assert actor._places == made._places


def test_an_actor_keeps_what_lasted_in_its_own_lanes() -> None:
    """Lanes have their numbers in the run, and arrays those of the actor's lanes alone."""
    actor = ActorsArchive(CONFIG, Part(1, 2))
    actor._candidates = [lasted(4, lane=2).found, lasted(5, lane=3).found]
    ages = np.array([3, 9 + CONFIG.rollout_steps])
    actions = np.array([[1, 2]] * CONFIG.frame_stack)
    actor.look([], ages, actions, [])
    assert [one.found.lane for one in actor.lasted] == [3]
    masks = action_table(CONFIG.actions).masks[2:3] * CONFIG.frame_skip
    assert actor.lasted[0].masks == masks * (CONFIG.frame_stack - 1)
    # Looked for again only after the next rollout, with what the learner knows then.
    assert actor._candidates == []
    assert actor.moments == {}


def test_the_numbers_of_a_resumed_learner_are_others() -> None:
    actor = ActorsArchive(CONFIG, Part(0, 2))
    follow(actor, told_of(archive()))
    other = LearnersArchive(CONFIG)
    other.take([parcel(lasted(7, b"other"))], [])
    follow(actor, told_of(other))
    assert [m.state for m in actor.moments.values()] == [b"other"]


def test_a_checkpoint_has_the_candidates_of_all_lanes() -> None:
    made = archive()
    parts = []
    for place, lane in ((4, 0), (5, 3), (4, 2)):
        found = lasted(place, bytes([lane]), lane).found
        row = [found.lane, found.age, found.x, *found.key]
        parts.append({"candidates": [row], "candidate_states": pack([found.state])})
    saved = made.saved(parts)
    assert [row[0] for row in saved["candidates"]] == [0, 3]
    assert unpack(saved["candidate_states"]) == [bytes([0]), bytes([3])]
    assert [numbers[0] for numbers in saved["numbers"]] == [1, 2]
    actor = ActorsArchive(CONFIG, Part(1, 2))
    actor.load_state_dict(saved)
    # Lanes 2 and 3 are its own.
    assert [one.lane for one in actor._candidates] == [3]
    own = actor.state_dict()
    assert own["numbers"] == own["keys"] == []
    whole = guide_of({"archive": saved, "failures": 1}, {"archive": own})
    assert (whole["archive"]["numbers"], whole["failures"]) == (saved["numbers"], 1)
    assert [row[0] for row in whole["archive"]["candidates"]] == [3]
