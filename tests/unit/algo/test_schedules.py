"""Schedules at their ends and between."""

import math

import pytest

from warpzone.algo.schedules import Anneal, Schedule


@pytest.mark.parametrize("warmup", [0.0, 0.1])
def test_ends(warmup: float) -> None:
    schedule = Schedule(3e-4, 1e-5, "cosine", warmup)
    assert schedule(0.0) == (0.0 if warmup else 3e-4)
    assert schedule(warmup) == 3e-4
    assert schedule(1.0) == 1e-5
    assert schedule(1.5) == 1e-5
    values = [schedule(warmup + (1.0 - warmup) * k / 50) for k in range(51)]
    assert values == sorted(values, reverse=True)


def test_shapes() -> None:
    assert Schedule(2.0, 0.0, "cosine")(0.25) == pytest.approx(1.0 + math.cos(math.pi / 4))
    assert Schedule(2.0, 0.0, "cosine", warmup=0.5)(0.75) == pytest.approx(1.0)
    assert Schedule(2.0, 0.0, "cosine", warmup=0.5)(0.25) == pytest.approx(1.0)
    assert Schedule(2.0, 7.0)(0.9) == 2.0
    assert Schedule(2.0, warmup=0.2)(0.1) == pytest.approx(1.0)


def test_a_warm_up_begins_with_what_its_first_update_reaches() -> None:
    schedule = Schedule(2.0, 0.0, "cosine", warmup=0.2, stride=0.05)
    assert [schedule(k * 0.05) for k in range(5)] == pytest.approx([0.5, 1.0, 1.5, 2.0, 2.0])
    assert Schedule(2.0, warmup=0.2, stride=0.5)(0.0) == 2.0
    after = Schedule(2.0, 0.0, "cosine", warmup=0.2)
    assert [schedule(k / 10) for k in range(2, 11)] == [after(k / 10) for k in range(2, 11)]


def test_entropy_anneals_to_exactly_zero() -> None:
    entropy = Anneal(0.02, 0.0)
    assert entropy(0.0) == entropy(-0.1) == 0.02
    assert entropy(0.5) == pytest.approx(0.01)
    assert entropy(1.0) == entropy(1.5) == 0.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schedule(1.0, kind="step"), "one of constant, cosine, not 'step'"),
        (lambda: Schedule(1.0, warmup=1.0), "share of the run"),
        (lambda: Schedule(math.inf), "finite"),
        (lambda: Anneal(math.nan), "finite"),
    ],
)
def test_nonsense_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
