"""What trials do, and how often each."""

from collections import Counter

import numpy as np
import pytest

from warpzone.teach.lessons import Step
from warpzone.teach.places import ALONG, Known, Path, Place
from warpzone.teach.tasks import GENTLE_TRIALS, Attempt, Order, Start, Task
from warpzone.teach.trials import (
    CUT_SHARE_FOUND,
    DETOUR,
    DRAWN,
    DRAWN_SHARE,
    DRAWN_SHARE_FOUND,
    JOINED_SHARE,
    KNOWN_SHARE,
    MOST_WAYS_TRIED,
    TEMPERATURES,
    Trials,
)

NONE = np.zeros(0, np.float16)
DOOR = Place((0,), b"", (), None, 0)
DETOURED = [Step(NONE, 3, True, NONE, 0.0)]


def task(tried: int = 0, found: int = 0) -> Task:
    one = Task(Start(7, 20), DOOR, trials=tried, found=found)
    one.paths.add(Path([DOOR], 10, 0))
    return one


def kind(order: Order) -> str:
    if order.drawn:
        return "drawn"
    return "known" if list(order.forced) == [3] else "buttons"


def shares(one: Task, known: Known, count: int = 3_000) -> dict[str, float]:
    trials = Trials(5, {7: known}, np.random.default_rng(0))
    drawn = Counter(kind(trials.draw(one)) for _ in range(count))
    return {name: number / count for name, number in drawn.items()}


def test_the_first_trials_are_gentle() -> None:
    known = Known()
    known.add(0, DOOR, DETOURED)
    one, trials = task(), Trials(5, {7: known}, np.random.default_rng(0))
    first = [trials.draw(one) for _ in range(GENTLE_TRIALS)]
    assert all(order.drawn and not order.forced and not order.alone for order in first)
    # Then what worked elsewhere, whole.
    order = trials.draw(one)
    assert (order.place, list(order.forced)) == (DOOR, [3])
    assert one.ways_tried == 1


def test_so_many_ways_are_tried_each_once() -> None:
    known = Known()
    for delay in range(MOST_WAYS_TRIED + 2):
        known.add_way(delay, [delay])
    one, trials = task(GENTLE_TRIALS), Trials(5, {7: known}, np.random.default_rng(0))
    orders = [trials.draw(one) for _ in range(MOST_WAYS_TRIED)]
    assert [order.forced for order in orders] == known.ways(20)[:MOST_WAYS_TRIED]
    trials.draw(one)
    assert one.ways_tried == MOST_WAYS_TRIED
    # Where the flag was reached already, something nearer to the agent is looked for.
    another = task(GENTLE_TRIALS, found=1)
    for _ in range(20):
        trials.draw(another)
    assert another.ways_tried == 0


def test_shares_of_trials() -> None:
    known = Known()
    known.add(0, DOOR, DETOURED)
    one = task(GENTLE_TRIALS)
    one.ways_tried = MOST_WAYS_TRIED
    others = {"known": KNOWN_SHARE + JOINED_SHARE, "drawn": DRAWN_SHARE, "buttons": 0.3}
    # The only way is the detour itself, from the door: what is cut, and what goes along it, looks
    # like what is known.
    cut = {name: 0.9 * share for name, share in others.items()}
    cut["known"] += 0.1
    assert shares(one, known) == pytest.approx(cut, abs=0.04)
    assert shares(one, Known())["drawn"] == pytest.approx(KNOWN_SHARE + DRAWN_SHARE, abs=0.04)
    found = task(GENTLE_TRIALS, found=1)
    assert shares(found, known)["drawn"] == pytest.approx(0.7 * DRAWN_SHARE_FOUND, abs=0.04)


def test_parts_of_ways_are_tried() -> None:
    """From the door on, of any length, of those that are tried whole."""
    known = Known()
    for delay in range(MOST_WAYS_TRIED + 2):
        known.add_way(delay, [4] * (8 if delay < MOST_WAYS_TRIED else 50))
    one, trials = task(GENTLE_TRIALS, found=1), Trials(5, {7: known}, np.random.default_rng(0))
    whole = known.ways(20)[:MOST_WAYS_TRIED]
    orders = [trials.draw(one) for _ in range(3_000)]
    cut = [order.forced for order in orders if order.place is DOOR and set(order.forced) == {4}]
    assert {len(part) for part in cut} >= set(range(1, max(map(len, whole)) + 1))
    assert len(cut) / len(orders) == pytest.approx(CUT_SHARE_FOUND, abs=0.04)


def test_ways_are_joined_where_they_meet_a_path() -> None:
    known = Known()
    met = Place((1,), b"", (), None, 0)
    met.come_from(DOOR, [Step(NONE, 1, False, NONE, 0.0)] * 6, 0)
    known.add(0, met, [Step(NONE, 2, False, NONE, 0.0)] * 300)
    one, trials = task(GENTLE_TRIALS), Trials(5, {7: known}, np.random.default_rng(0))
    one.ways_tried = MOST_WAYS_TRIED
    elsewhere = Place((1,), b"", (), None, 0)
    elsewhere.come_from(DOOR, [Step(NONE, 4, False, NONE, 0.0)] * 9, 0)
    one.paths.kept = [Path([elsewhere], 10, 0)]
    orders = [trials.draw(one) for _ in range(3_000)]
    joined = [order for order in orders if set(order.forced) == {2} and order.place is elsewhere]
    along = [len(order.forced) for order in joined]
    # Trials with any buttons hold one of them for a few steps only.
    assert sum(length > 14 for length in along) / len(orders) > 0.6 * 0.9 * JOINED_SHARE
    assert 0.9 * ALONG[1] < max(along) <= ALONG[1]


def test_lengths_and_temperatures() -> None:
    one, trials = task(GENTLE_TRIALS), Trials(5, {7: Known()}, np.random.default_rng(0))
    orders = [trials.draw(one) for _ in range(2_000)]
    drawn = [order for order in orders if order.drawn]
    assert {order.temperature for order in drawn} == set(TEMPERATURES)
    buttons = [order.forced for order in orders if order.forced]
    for lengths, (least, most) in (
        ([order.drawn for order in drawn], DRAWN),
        ([len(forced) for forced in buttons], DETOUR),
    ):
        assert (min(lengths), max(lengths)) == (least, most)
        assert np.median(lengths) == pytest.approx(np.sqrt(least * most), rel=0.15)
    assert {action for forced in buttons for action in forced} == set(range(5))


def test_an_attempt_knows_how_far_it_is() -> None:
    step = Step(NONE, 1, False, NONE, 0.0)
    place = Place((1,), b"", (), None, 0)
    place.come_from(DOOR, (step,) * 4, 2)
    attempt = Attempt(Order(task(), place, [1, 2], drawn=1), ())
    marks = []
    for _ in range(4):
        marks.append(attempt.on_detour)
        attempt.steps.append(step)
    assert marks == [True, True, True, False]
    assert attempt.depth == 8
    assert attempt.detours == 3
    assert Attempt(Order(task(), DOOR, alone=True), ()).detours == 0
