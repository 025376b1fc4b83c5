"""Hints: what a run that goes nowhere is told, when, and how often."""

from collections.abc import Callable
from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.health.hints import MOSTLY_FORCED, NO_DISTANCE, NO_GAIN, NOTHING_LEARNED, WARM, Hints


def given(hints: Hints, updates: int, row: Callable[[int], dict[str, Any]]) -> dict[int, list[str]]:
    """Update -> what was said at it."""
    said = {update: hints.read({"update": update, **row(update)}) for update in range(1, updates)}
    return {update: texts for update, texts in said.items() if texts}


def test_a_hint_is_given_again_after_its_cooldown() -> None:
    hints = Hints(tiny(hint_cooldown_updates=30))
    said = given(hints, 80, lambda _: {"env_distance_delta_sum": 0.0})
    assert list(said) == [NO_DISTANCE, NO_DISTANCE + 30, NO_DISTANCE + 60]
    assert "no lane has gained ground for 10 updates" in said[NO_DISTANCE][0]
    assert given(Hints(tiny(hint_cooldown_updates=0)), 80, lambda _: {}) == {}


def test_no_hint_while_all_is_well() -> None:
    def row(update: int) -> dict[str, Any]:
        return {
            "env_distance_delta_sum": update % 2,  # Ground is gained now and then.
            "gpu_util_mean_window": 80.0,
            "avg_return": float(update),
            "recent_return_std": 1.0,
            "clear_rate": 0.1,
        }

    assert given(Hints(tiny()), 1000, row) == {}


def test_a_run_that_is_forced_says_so() -> None:
    """Soon, and as long as it lasts after each cooldown; with when it will end."""
    config = tiny(scripted_sequence="RIGHT+B:180", max_steps=1_000_000, hint_cooldown_updates=30)
    said = given(Hints(config), 20, lambda _: {"forced_share": 0.95})
    assert list(said) == [MOSTLY_FORCED]
    (text,) = said[MOSTLY_FORCED]
    assert text.startswith("95% of the steps were forced for 3 updates")
    assert "--scripted-share (scripts end at step 100,000)" in text
    said = given(Hints(config), 20, lambda _: {"forced_share": 1.0})
    assert list(said) == [MOSTLY_FORCED, NOTHING_LEARNED]
    assert "learned from no step for 5 updates" in said[NOTHING_LEARNED][0]
    never = config.replace(scripted_share=1.0)
    said = given(Hints(never), 5, lambda _: {"forced_share": 1.0})
    assert "(scripts end never)" in said[MOSTLY_FORCED][0]
    assert given(Hints(config), 50, lambda update: {"forced_share": 0.95 * (update % 3 > 0)}) == {}


def test_a_run_whose_optimiser_steps_never_count_says_so() -> None:
    config = tiny(epochs=2)
    assert config.optimiser_steps == 4
    said = given(Hints(config), 9, lambda update: {"updates_skipped": 4.0 * update})
    assert list(said) == [NOTHING_LEARNED]
    assert said[NOTHING_LEARNED] == ["no optimiser step was applied for 5 updates: lower --lr"]
    assert given(Hints(config), 50, lambda update: {"updates_skipped": 3.0 * update}) == {}


def test_a_gpu_that_waits() -> None:
    def row(update: int) -> dict[str, Any]:
        return {"gpu_util_mean_window": 12.0, "seconds": 2.0 * update}

    first = int(WARM / 2)
    said = given(Hints(tiny()), first + 5, row)
    assert list(said) == [first]
    assert "the GPU is busy 12 % of the time" in said[first][0]
    assert "--overlap-collect" in said[first][0]
    overlapped = given(Hints(tiny(overlap_collect=True)), first + 5, row)
    assert "--overlap-collect" not in overlapped[first][0]


@pytest.mark.parametrize(("clear_rate", "expected"), [(0.2, [NO_GAIN + 10]), (0.95, [])])
def test_returns_that_stagnate(clear_rate: float, expected: list[int]) -> None:
    def row(update: int) -> dict[str, Any]:
        gained = min(update, 10)
        return {"avg_return": gained, "recent_return_std": 2.0, "clear_rate": clear_rate}

    said = given(Hints(tiny()), NO_GAIN + 50, row)
    assert list(said) == expected
