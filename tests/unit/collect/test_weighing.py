"""Which places of a way are practised."""

import numpy as np
import pytest

from warpzone.collect.practice import LEAST_WEIGHT, SHOWN, STRIDE, Practice, Spot
from warpzone.collect.search import Way
from warpzone.collect.ways import FIRST_PLACE
from warpzone.env.stages import parse_stages

MAZE = parse_stages("4-4")[0]


def practice(size: int = 60) -> Practice:
    none = np.zeros(size), np.zeros(size)
    return Practice(Way(MAZE, 0, []), FIRST_PLACE, [Spot(b"", b"")] * size, *none)


def test_practice_moves_from_the_flag_to_the_start() -> None:
    """A learner that clears from the last places only, and from one more after each 20 attempts at
    the place before those: nearly all of its practice is at that border, and it reaches the
    start."""
    one, random = practice(), np.random.default_rng(0)
    border, tries, near, total = 50, 0, 0, 0
    while border > 0 and total < 60_000:
        weights = one.weights(0.0)
        index = int(random.choice(len(weights), p=weights / weights.sum()))
        one.count(FIRST_PLACE + index, index >= border)
        total += 1
        near += abs(index - border) <= 3
        tries += index == border - 1
        if tries == 20:
            border, tries = border - 1, 0
    assert border == 0
    assert near > 0.4 * total
    assert total < 20_000


def test_a_hard_end_does_not_hold_practice() -> None:
    """Half of the attempts from anywhere end shortly before the flag. The border is where practice
    is, all the same: places behind it that all lead to the same end teach nothing."""
    one, random = practice(120), np.random.default_rng(0)
    border, tries, near, total = 100, 0, 0, 0
    while border > 0 and total < 60_000:
        weights = one.weights(0.0)
        for index in random.choice(len(weights), 8, p=weights / weights.sum()):
            cleared = index >= border and random.random() < (0.95 if index >= 105 else 0.5)
            one.count(FIRST_PLACE + int(index), cleared)
            total += 1
            near += abs(index - border) <= 3
            tries += border - 2 <= index <= border
        if tries >= 20:
            border, tries = border - 1, 0
    assert border == 0
    assert near > 0.2 * total
    assert total < 25_000


def slow_weights(one: Practice, door: float) -> list[float]:
    """The formula, place by place."""
    size = len(one.places)

    def rate(attempts: float, clears: float, prior: float) -> float:
        return (clears + 2.0 * prior) / (attempts + 2.0)

    def smooth(index: int) -> float:
        if index >= size:
            return 1.0
        near = range(max(0, index - 2), min(size, index + 3))
        attempts, clears = (sum(values[at] for at in near) for values in (one.attempts, one.clears))
        return rate(attempts, clears, one.prior[index])

    def own(index: int) -> float:
        return rate(one.attempts[index], one.clears[index], one.prior[index])

    found = []
    for index in range(size):
        ahead = sum(smooth(index + places) for places in range(3, 8)) / 5.0
        share = min(1.0, smooth(index) / ahead)
        weight = (4.0 * share * (1.0 - share)) ** 2
        begin = max(0, (index + 1) * STRIDE - SHOWN[index % len(SHOWN)])
        before = own(begin // STRIDE - 1) if begin else door
        if before < 0.2:
            weight = max(weight, min(1.0, max(0.0, (own(index) - before) / ahead)))
        found.append(max(LEAST_WEIGHT, weight * min(1.0, ahead / 0.2) ** 2))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_weights_are_those_of_the_slow_formula(seed: int) -> None:
    random = np.random.default_rng(seed)
    one = practice(int(random.integers(1, 60)))
    size = len(one.places)
    one.attempts[:] = random.integers(0, 30, size) * (random.random(size) < random.random())
    one.clears[:] = one.attempts * random.random(size) * (random.random(size) < random.random())
    one.prior[:] = random.uniform(0.01, 0.99, size)
    for door in (0.0, 0.3):
        assert one.weights(door).tolist() == pytest.approx(slow_weights(one, door))
