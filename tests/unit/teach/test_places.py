"""Where trials begin, and what is known from elsewhere."""

from collections import Counter

import numpy as np
import pytest

from warpzone.teach import places
from warpzone.teach.lessons import Step
from warpzone.teach.places import BACK, EACH_DETOUR, NEARLY, SPARSE, Known, Path, Paths, Place

NONE = np.zeros(0, np.float16)


def step(action: int, shown: bool = False) -> Step:
    return Step(NONE, action, shown, NONE, 0.0)


def place(
    key: int, before: Place | None = None, steps: tuple[Step, ...] = (), detours: int = 0
) -> Place:
    one = Place((key,), b"", (), None, 0)
    if before is not None:
        one.come_from(before, steps, detours)
    return one


def row(count: int, detours: int = 0, end: int | None = None) -> Path:
    """A path with a place after every second step."""
    door = place(0)
    found = [door] + [place(n, door, (step(1),) * (2 * n), detours) for n in range(1, count)]
    return Path(found, 2 * count if end is None else end, detours)


def test_a_path_begins_at_the_door() -> None:
    door = place(0)
    first = place(1, door, (step(1), step(2)))
    second = place(2, first, (step(3),))
    assert [one.action for one in second.path([step(4)])] == [1, 2, 3, 4]
    assert door.path([]) == []
    assert second.chain() == [door, first, second]
    assert [one.depth for one in second.chain()] == [0, 2, 3]


def test_trials_begin_shortly_before_the_end() -> None:
    path = row(200)
    random = np.random.default_rng(0)
    back = np.array([path.end - path.draw(random).depth for _ in range(8_000)])
    assert back.min() <= 2
    # One in five begins anywhere; of the others half within the median of their distribution.
    near = (back <= 2 + BACK * np.log(2)).mean()
    assert near == pytest.approx(0.8 * 0.5 + 0.2 * (2 + BACK * np.log(2)) / 400, abs=0.03)
    assert (back > 200).mean() == pytest.approx(0.1, abs=0.02)


def test_a_patient_trial_may_begin_far_before_the_end() -> None:
    """In a maze the wrong turn lies there."""
    path, random = row(400), np.random.default_rng(0)
    back = {
        patient: np.array([path.end - path.draw(random, patient).depth for _ in range(4_000)])
        for patient in (False, True)
    }
    far = {patient: ((found > 150) & (found < 400)).mean() for patient, found in back.items()}
    assert far[True] > 1.5 * far[False]
    assert np.median(back[True]) < 100


def test_a_path_that_is_hardly_begun_is_tried_from_its_door() -> None:
    path = Path([place(0)], 3, 0)
    assert path.draw(np.random.default_rng(0)).key == (0,)


def test_paths_that_came_far_with_few_detours_and_were_seldom_tried_are_drawn() -> None:
    paths = Paths()
    for path in (row(40), row(40, detours=1), row(20), row(40)):
        paths.add(path)
    paths.kept[3].tries = 3
    np.testing.assert_allclose(
        paths.weights() / paths.weights()[0], [1.0, EACH_DETOUR, 1 / 8, 0.5], rtol=1e-6
    )
    random = np.random.default_rng(0)
    first = paths.draw(random)
    assert first.tries == (4 if first is paths.kept[3] else 1)
    drawn = Counter[int]()
    for _ in range(20_000):
        for path, tries in zip(paths.kept, (0, 0, 0, 3), strict=True):
            path.tries = tries
        drawn[paths.kept.index(paths.draw(random))] += 1
    assert drawn[1] / drawn[0] == pytest.approx(EACH_DETOUR, abs=0.03)
    assert drawn[2] / drawn[0] == pytest.approx(1 / 8, abs=0.02)


def test_a_pioneer_goes_on_from_the_path_that_came_furthest() -> None:
    """However many detours it took: a long way needs one after the other."""
    paths = Paths()
    for path in (row(20), row(40, detours=4)):
        paths.add(path)
    early, late = paths.weights()
    assert early > late
    paths.patient = True
    early, late = paths.weights()
    assert late / early == pytest.approx(places.EACH_DETOUR_PATIENT**4 * 2**4)
    assert late > 5 * early


def test_far_from_the_end_places_are_sparse() -> None:
    path = row(400)
    depths = [place.depth for place in path.places]
    assert depths == sorted([*range(0, 800 - NEARLY, 2 * SPARSE), *range(800 - NEARLY, 800, 2)])
    assert path.ground == 400


def test_steps_of_places_are_shared() -> None:
    """Those of a place are the first ones, however many come."""
    door, trail = place(0), [step(1)]
    first, second = place(1), place(2)
    first.come_from(door, trail, 0)
    trail.append(step(2))
    second.come_from(door, trail, 0)
    assert first.trail is second.trail
    assert [one.action for one in first.path([step(9)])] == [1, 9]
    assert [one.action for one in second.path([])] == [1, 2]


def test_ground_is_counted_once() -> None:
    door = place(0)
    to_and_fro = [door, place(1, door), place(0, door), place(1, door)]
    assert Path(to_and_fro, 4, 0).ground == 2


def test_the_least_likely_path_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_PATHS", 2)
    paths, short = Paths(), row(3)
    for path in (short, row(30), row(40)):
        paths.add(path)
    assert len(paths.kept) == 2
    assert short not in paths.kept
    monkeypatch.setattr(places, "MOST_PATHS_PATIENT", 3)
    paths.patient = True
    for _ in range(3):
        paths.add(row(40))
    assert len(paths.kept) == 3


def found(known: Known, start_delay: int = 7) -> None:
    """Two detours: from place 1 after two steps of the agent, and from place 2."""
    door = place(0)
    before = place(1, door, (step(5), step(6)))
    after = place(2, before, (step(1, True), step(9), step(2, True), step(7)), detours=1)
    known.add(start_delay, after, (step(3, True), step(8)))


def test_detours_are_known_by_where_they_began() -> None:
    """Up to the last step that was shown, with what the agent did between."""
    known = Known()
    found(known)
    assert len(known) == 2
    found(known, 8)
    assert len(known) == 2
    random = np.random.default_rng(0)
    door = place(0)
    path = Path([door, place(1, door, (step(5),) * 9), place(3, door, (step(5),) * 9)], 12, 0)
    drawn = Counter[tuple[int, ...]]()
    for _ in range(500):
        taken = known.draw(path, random)
        assert taken is not None
        assert taken[0] is path.places[1]
        drawn[tuple(taken[1])] += 1
    # Mostly whole, now and then cut off.
    assert drawn.keys() == {(1,), (1, 9), (1, 9, 2)}
    assert drawn[1, 9, 2] / 500 == pytest.approx(0.8, abs=0.06)
    assert known.draw(Path([door], 12, 0), random) is None


def test_known_detours_are_taken_near_the_end() -> None:
    known = Known()
    found(known)
    door = place(1)
    path = Path([door, place(2, door, (step(1),) * 200)], 200, 0)
    random = np.random.default_rng(0)
    taken = [known.draw(path, random) for _ in range(400)]
    late = sum(one is not None and one[0] is path.places[1] for one in taken)
    assert late > 370


def test_ways_are_gone_along_from_where_they_meet_a_path() -> None:
    """From any place that the way came by, with the steps that it took from there."""
    known, door = Known(), place(0)
    before = place(1, door, (step(5), step(6)))
    last = place(4, before, (step(1), step(2), step(3)))
    known.add(7, before, (step(1), step(2), step(3), step(8)), [last])
    random = np.random.default_rng(0)
    here = place(4, door, (step(9),) * 30)
    taken = [known.join(Path([here], 40, 0), random) for _ in range(50)]
    assert all(one is not None and one[0] is here and one[1] == [8] for one in taken)
    there = place(1, door, (step(9),) * 30)
    parts = {tuple(one[1]) for _ in range(200) if (one := known.join(Path([there], 40, 0), random))}
    assert parts == {(1, 2, 3, 8)}
    assert known.join(Path([place(9)], 40, 0), random) is None


def test_parts_of_ways_have_any_length() -> None:
    known, door = Known(), place(0)
    known.add(7, door, (step(1),) * 500)
    random, path = np.random.default_rng(0), Path([door], 40, 0)
    lengths = [len(one[1]) for _ in range(2_000) if (one := known.join(path, random))]
    assert (min(lengths), max(lengths)) == places.ALONG
    assert np.median(lengths) == pytest.approx(np.sqrt(np.prod(places.ALONG)), rel=0.1)


def test_only_the_newest_ways_of_a_place_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_JOINED", 2)
    known, door = Known(), place(0)
    for action in (1, 2, 3):
        known.add(0, door, [step(action)] * 9)
    random, path = np.random.default_rng(0), Path([door], 5, 0)
    taken = {one[1][0] for _ in range(50) if (one := known.join(path, random))}
    assert taken == {2, 3}


def test_the_newest_way_comes_first_then_those_of_similar_start_delays() -> None:
    known = Known()
    assert known.ways(0) == []
    found(known, 90)
    known.add_way(7, [1, 1])
    known.add_way(50, [2])
    known.add_way(200, [3])
    assert known.ways(10) == [[3], [1, 1], [2], [5, 6, 1, 9, 2, 7, 3, 8]]
    assert known.ways(100)[1] == [5, 6, 1, 9, 2, 7, 3, 8]
    for delay in range(places.MOST_WAYS):
        known.add_way(delay, [delay])
    assert len(known.ways(0)) == places.MOST_WAYS
    assert [1, 1] not in known.ways(0)


def test_only_the_newest_detours_of_a_place_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "MOST_DETOURS", 2)
    known, door = Known(), place(0)
    for action in (1, 2, 3):
        known.add(0, door, [step(action, True)])
    random, path = np.random.default_rng(0), Path([door], 5, 0)
    taken = {tuple(one[1]) for _ in range(50) if (one := known.draw(path, random))}
    assert taken == {(2,), (3,)}
