"""What trials are compared by."""

from typing import Any

import pytest

from warpzone.search.objective import Objective, points_of


def rows(step: int, cleared: int, x: int) -> list[dict[str, Any]]:
    """An evaluation of four start delays, argmax and sampled; the sampled policy clears nothing."""
    return [
        {"global_step": step, "policy": policy, "furthest_x": x,
         "cleared": policy == "argmax" and delay < cleared}
        for delay in range(4)
        for policy in ("argmax", "sampled")
    ]  # fmt: skip


POINTS = points_of([*rows(200, 3, 40), *rows(100, 1, 90), *rows(300, 2, 10)])


def test_points_are_in_the_order_of_steps() -> None:
    assert [step for step, _ in POINTS] == [100, 200, 300]
    assert all(len(found) == 8 for _, found in POINTS)


@pytest.mark.parametrize(
    ("objective", "values"),
    [
        (Objective("clears", 0, 300), [1.0, 3.0, 3.0]),
        (Objective("distance", 0, 300), [90.0, 90.0, 90.0]),
        # 1 of 3 clears: further away than the end by two thirds of the run.
        (Objective("steps", 3, 300), [300 * (2 - 1 / 3), 200.0, 200.0]),
        (Objective("steps", 4, 300), [525.0, 375.0, 375.0]),
    ],
)
def test_the_best_evaluation_so_far_counts(objective: Objective, values: list[float]) -> None:
    assert objective.value([]) is None
    found = [objective.value(POINTS[:count]) for count in (1, 2, 3)]
    assert found == pytest.approx(values)


def test_only_argmax_clears_count() -> None:
    both = [{**row, "cleared": True} for row in rows(100, 0, 0)]
    assert Objective("clears", 0, 300).value(points_of(both)) == 4.0
    sampled = [{**row, "cleared": row["policy"] == "sampled"} for row in both]
    assert Objective("clears", 0, 300).value(points_of(sampled)) == 0.0
    assert Objective("steps", 1, 300).value(points_of(sampled)) == 600.0
