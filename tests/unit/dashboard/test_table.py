"""Numbers as columns, and curves thinned out for a screen."""

import numpy as np
import pytest

from warpzone.dashboard import table as tables
from warpzone.dashboard.stage_counts import Stages
from warpzone.dashboard.table import Table, thin_out


def filled(count: int) -> Table:
    table = Table()
    rng = np.random.default_rng(0)
    values = rng.normal(size=count)
    table.add({"update": n, "global_step": 10 * n, "loss": float(values[n])} for n in range(count))
    return table


def test_extremes_and_ends_survive() -> None:
    y = np.random.default_rng(1).normal(size=10_000)
    y[4321], y[8765] = 50.0, -50.0
    x = np.arange(10_000.0)
    kept_x, kept_y = thin_out(x, y, 400)
    assert len(kept_x) <= 402
    assert kept_y.max() == 50.0
    assert kept_y.min() == -50.0
    assert (kept_x[0], kept_x[-1]) == (0.0, 9999.0)
    assert (np.diff(kept_x) > 0).all()
    assert (y[kept_x.astype(int)] == kept_y).all()


def test_a_range_shows_more_of_less() -> None:
    table = filled(10_000)
    x, _ = table.curve("loss", "global_step", 50_000, 51_000, 400)
    # All points of the range, and one on either side so that the line goes on to the edge.
    assert x.tolist() == [10.0 * n for n in range(4999, 5102)]
    assert len(table.curve("nothing", "update", None, None, 400)[0]) == 0


def test_rows_without_a_number_have_gaps() -> None:
    table = Table()
    table.add([{"update": 1, "a": 1.0}, {"update": 2, "a": None, "b": 5}, {"update": 3, "a": 3}])
    assert table.curve("a", "update", None, None, 100)[0].tolist() == [1.0, 3.0]
    assert table.curve("b", "update", None, None, 100)[1].tolist() == [5.0]
    assert table.last() == {"update": 3.0, "a": 3.0, "b": None}


def test_a_run_that_goes_back_replaces_what_came_after() -> None:
    table = Table()
    table.add({"update": n, "a": n} for n in range(10))
    table.add({"update": n, "a": -n} for n in range(6, 8))
    assert table.curve("a", "update", None, None, 100)[1].tolist() == [0, 1, 2, 3, 4, 5, -6, -7]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 1000)
    table = filled(5000)
    assert table.count <= 1000
    x, _ = table.curve("loss", "update", None, None, 2000)
    assert (x[0], x[-1]) == (0.0, 4999.0)
    assert (np.diff(x) > 0).all()


def test_stages_count_what_ended_where() -> None:
    stages = Stages()
    stages.add(
        [
            {"stage": 0, "reason": "death", "furthest_x": 320},
            {"stage": 0, "reason": "stagnation", "furthest_x": 325},
            {"stage": 0, "reason": "flag", "furthest_x": 3161},
            {"stage": 99, "reason": "death", "furthest_x": 1},
        ]
    )
    stages.evaluated([{"stage": "1-1", "policy": "argmax", "cleared": True}])
    grid = stages.grid()["1-1"]
    assert grid["episodes"] == 3
    assert grid["rate"] == pytest.approx(1 / 3)
    assert grid["evaluated"] == {"argmax": [1, 1]}
    assert stages.ends("1-1")["ends"] == {
        "death": [(20, 1)],
        "stall": [(20, 1)],
        "flag": [(197, 1)],
    }
    assert stages.ends("8-4")["furthest"] == 0


def test_the_board_counts_from_the_door() -> None:
    stages = Stages()
    flags = {"stage": 3, "reason": "flag", "furthest_x": 2000}
    deaths = {"stage": 3, "reason": "death", "furthest_x": 700, "restart": 0}
    stages.add([{**flags, "restart": 5}] * 9 + [flags] * 40 + [deaths] * 10 + [deaths] * 50)
    shown = stages.grid()["1-4"]
    assert (shown["episodes"], shown["recent"]) == (109, 100)
    assert shown["rate"] == pytest.approx(0.4)
    assert shown["trend"]["recent"] == [0.8, 0.0]
    assert shown["worst"]["recent"] == [640, 60]


def test_the_board_remembers_evaluations() -> None:
    stages = Stages()
    for step, cleared in ((10, [False, False]), (20, [True, False])):
        rows = [
            {"stage": "1-1", "policy": "argmax", "global_step": step, "cleared": one, "x": 130}
            for one in cleared
        ]
        stages.remember(rows[:1])
        stages.remember(rows[1:])
        stages.evaluated(rows)
    stages.remember([{"stage": "9-9", "policy": "argmax", "global_step": 1}, {"stage": "1-1"}])
    shown = stages.grid()["1-1"]
    assert shown["evaluated"] == {"argmax": [1, 2]}
    assert shown["trend"] == {"recent": [], "argmax": [0.0, 0.5]}
    assert shown["worst"] == {"argmax": [128, 1]}
    assert set(stages.grid()) == {"1-1"}
    stages.add([{"stage": 0, "reason": "death", "furthest_x": 9}])
    stages.clear_episodes()
    assert stages.grid()["1-1"]["trend"]["argmax"] == [0.0, 0.5]
    assert stages.grid()["1-1"]["episodes"] == 0
    many = [{"stage": "1-1", "policy": "argmax", "global_step": n} for n in range(100)]
    stages.remember(many)
    assert len(stages.grid()["1-1"]["trend"]["argmax"]) == 24
    stages.forget_evaluations()
    assert stages.grid()["1-1"]["trend"] == {"recent": []}
