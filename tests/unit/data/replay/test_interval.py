"""The interval of replay: fixed, or by the variance of TD errors."""

import math

import pytest
import torch

from warpzone.data.replay.interval import Interval


def errors(variance: float) -> torch.Tensor:
    size = math.sqrt(variance)
    return torch.tensor([[-size, size], [size, -size]])


def after(interval: Interval, *variances: float) -> list[int]:
    values = []
    for variance in variances:
        interval.observe(errors(variance))
        values.append(interval.value)
    return values


def test_it_doubles_while_errors_are_alike_and_halves_when_they_are_not() -> None:
    interval = Interval(2, 16)
    assert interval.adaptive
    # The first one is what others are compared with; the mean follows by a tenth each time.
    assert after(interval, 1.0, 1.05, 0.5, 0.5, 0.5, 0.5) == [2, 2, 4, 8, 16, 16]
    assert after(interval, 9.0, 9.0, 9.0, 9.0) == [8, 4, 2, 2]


def test_a_fixed_one_stays() -> None:
    for most in (0, 3):
        interval = Interval(3, most)
        assert not interval.adaptive
        assert after(interval, 1.0, 0.1, 0.1) == [3, 3, 3]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_errors_that_are_not_finite_say_nothing(bad: float) -> None:
    interval = Interval(1, 8)
    after(interval, 1.0, 0.5)
    interval.observe(torch.tensor([bad, 1.0]))
    assert interval.value == 2
    assert after(interval, 0.5) == [4]


def test_it_goes_on_after_a_resume_and_keeps_to_new_bounds() -> None:
    first, second = Interval(1, 8), Interval(1, 8)
    after(first, 1.0, 0.5, 0.5)
    first.observe(errors(0.5))  # Not looked at yet.
    second.load_state_dict(first.state_dict())
    assert (first.value, second.value) == (8, 8)
    assert after(first, 0.9, 0.9) == after(second, 0.9, 0.9)
    small = Interval(1, 4)
    small.load_state_dict(first.state_dict() | {"value": 8})
    assert small.value == 4
    fresh = Interval(2, 8)
    fresh.load_state_dict(Interval(2, 8).state_dict())
    assert after(fresh, 1.0, 0.5) == [2, 4]
