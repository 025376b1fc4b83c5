"""What attempts on ways come to, and what ways tell each other."""

from dataclasses import replace

import numpy as np

from warpzone.collect.practice import Practice, Spot, compare
from warpzone.collect.search import Way
from warpzone.collect.ways import FIRST_PLACE
from warpzone.env.stages import parse_stages

MAZE = parse_stages("4-4")[0]


def practice(size: int) -> Practice:
    none = np.zeros(size), np.zeros(size)
    return Practice(Way(MAZE, 0, []), FIRST_PLACE, [Spot(b"", b"")] * size, *none)


def test_ways_tell_each_other_what_attempts_come_to() -> None:
    """Only those in the same cell of the same stage, and not what a way has tried itself."""
    ways = {number: practice(3) for number in (0, 10, 20, 30)}
    ways[30] = replace(ways[30], way=Way(MAZE + 1, 0, []))
    for one, cells in ((0, (1, 2, 2)), (10, (2, 1, 3)), (20, (2, 2, 4)), (30, (1, 2, 3))):
        ways[one].places[:] = [Spot(b"", b"", (0, cell)) for cell in cells]
    for one, attempts, clears in (
        (0, (5, 1, 0), (1, 1, 0)),
        (10, (2, 4, 8), (0, 3, 8)),
        (20, (1, 2, 0), (1, 0, 0)),
        (30, (9, 9, 9), (9, 9, 9)),
    ):
        ways[one].attempts[:], ways[one].clears[:] = attempts, clears
    compare(ways)
    expected = {
        0: [(3 + 1) / (4 + 2), (1 + 1) / (5 + 2), (1 + 1) / (5 + 2)],
        10: [(2 + 1) / (4 + 2), (1 + 1) / (5 + 2), 0.5],
        20: [(1 + 1) / (3 + 2), (1 + 1) / (3 + 2), 0.5],
        30: [0.5, 0.5, 0.5],
    }
    for number, chances in expected.items():
        np.testing.assert_allclose(ways[number].prior, chances)
    # Where a way has tried often, its own attempts decide.
    ways[0].attempts[:], ways[0].clears[:] = 1000.0, 0.0
    assert (ways[0].chances() < 0.01).all()


def test_how_far_practice_has_come_does_not_depend_on_a_hard_end() -> None:
    one = practice(40)
    assert (one.mastered, one.reached) == (0.0, 0.0)
    one.attempts[10:] = 20.0
    one.clears[20:] = 6.0
    assert one.reached == 0.5
    assert one.mastered == 0.0
    one.clears[10] = 1.0
    assert one.reached == 0.75
    for _ in range(30):
        # What cleared long ago says nothing.
        one.count(FIRST_PLACE + 10, False)
    assert one.reached == 0.5
