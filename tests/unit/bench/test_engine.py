"""The arithmetic of benchmarks; the numbers themselves are measured elsewhere."""

from typing import Any

import pytest

from warpzone.bench.engine import MAIN, Plan, checks, setups
from warpzone.bench.rounds import Case, cpu_ratio, interleave, ratio, until
from warpzone.bench.workload import HOLD, Setup, random_masks


def case(name: str, rates: list[float], **about: object) -> Case:
    """One that got half of a core."""
    cpu_rates = [2.0 * rate for rate in rates]
    return Case(name, "steps/s", lambda seconds: 1, dict(about), rates, cpu_rates)


def test_rounds_are_interleaved() -> None:
    order: list[str] = []
    said: list[str] = []

    def work(name: str) -> Case:
        return Case(name, "things/s", lambda seconds: order.append(name) or 1)  # type: ignore[func-returns-value]

    cases = [work("a"), work("b")]
    interleave(cases, 5, 0.0, said.append)
    assert order == ["a", "b"] * 6
    assert all(len(one.rates) == 5 for one in cases)
    assert len(said) == 5


def test_ratio_is_the_median_of_the_rounds() -> None:
    fast, slow = case("fast", [10, 40, 9]), case("slow", [1, 2, 3])
    assert ratio(fast, slow) == 10
    slow.cpu_rates = [1.0, 1.0, 1.0]
    assert cpu_ratio(fast, slow) == 20
    assert fast.summary()["median_per_cpu_second"] == 20
    assert fast.summary()["cpu_rates"] == [20, 80, 18]
    assert case("x", [3, 1, 2]).rates == [3, 1, 2]


def test_until_runs_at_least_once() -> None:
    assert until(0.0, lambda: 7) == 7
    assert until(0.01, lambda: 1) > 1


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"rounds": 4}, "medians need at least 5 rounds, not 4"),
        ({"seconds": 0}, "a slice must last longer than 0 s"),
        ({"lanes": ()}, "lanes and threads are lists of numbers from 1 up"),
        ({"threads": (0,)}, "lanes and threads are lists of numbers from 1 up"),
    ],
)
def test_plan_refuses_what_makes_no_median(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Plan(**bad)


def test_setups_have_no_repetition_and_no_idle_threads() -> None:
    found = setups(Plan(lanes=(1, 16), threads=(1, 2)), translated=True)
    assert len(found) == len(set(found))
    assert MAIN in found
    assert all(setup.threads <= setup.lanes for setup in found)
    assert setups(Plan(), translated=False) == [Setup(translated=False)]


def test_checks_compare_with_the_targets() -> None:
    cases = {
        "steps translated 16x1": case("m", [310.0] * 5, **MAIN.about()),
        "steps translated 16x2": case("t", [600.0] * 5, **Setup(threads=2).about()),
        "steps nes-py": case("n", [1.0] * 5),
    }
    found = {check["what"]: check for check in checks(cases, {"reset_us": 60.0})}
    assert found["steps, translated / nes-py"]["ok"]
    assert found["steps, translated / nes-py"]["per_cpu_second"] == pytest.approx(310)
    assert found["2 threads / 1, 16 lanes"]["value"] == pytest.approx(600 / 310)
    assert not found["reset of a lane, us"]["ok"]
    assert "steps, avx2 / nes-py" not in found


def test_random_buttons_are_held() -> None:
    masks = random_masks(40)
    assert len(masks) == 40
    assert all(len(set(masks[at : at + HOLD])) == 1 for at in range(0, 40, HOLD))
    assert random_masks(40) == masks != random_masks(40, seed=1)
