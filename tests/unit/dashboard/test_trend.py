"""What the list of all runs says about each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import make_run, write_rows

from warpzone.dashboard import trend
from warpzone.dashboard.catalogue import Catalogue


def metrics(run: Path, count: int, more: str = "") -> None:
    (run / "metrics.jsonl").write_text("")
    rows = [
        {"update": n, "global_step": 10 * n, "seconds": n, "clear_rate": n / count, "more": more}
        for n in range(1, count + 1)
    ]
    write_rows(run / "metrics.jsonl", rows)


@pytest.mark.parametrize(("count", "more"), [(3, ""), (100, ""), (3000, "x" * 500)])
def test_a_trend_from_the_first_to_the_last_row(tmp_path: Path, count: int, more: str) -> None:
    run = make_run(tmp_path)
    metrics(run, count, more)
    found = trend.trend(run)["trend"]
    assert found[0] == [10, round(1 / count, 4)]
    assert found[-1] == [10 * count, 1.0]
    assert [step for step, _ in found] == sorted({step for step, _ in found})
    assert min(count, 20) <= len(found) <= trend.POINTS + 1
    assert all(rate == round(step / 10 / count, 4) for step, rate in found)


def test_a_trend_of_nothing_and_of_nonsense(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert trend.trend(run) == {"trend": []}
    (run / "metrics.jsonl").write_bytes(
        b'\xff\n{"global_step": 1e400, "clear_rate": 1}\n[1]\n{"a\n'
    )
    assert trend.trend(run) == {"trend": []}
    (run / "metrics.jsonl").unlink()
    assert trend.trend(run) == {"trend": []}


def test_the_best_evaluation_and_the_cost(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs")
    metrics(run, 5)
    listed = Catalogue(tmp_path / "runs")

    def row() -> dict[str, Any]:
        (found,) = listed.scan().rows
        return found

    first = row()
    assert (first["best"], first["best_of"], first["device"]) == (None, None, None)
    write_rows(run / "evals.jsonl", [{"clears": n, "stage": "1-1"} for n in (3, 3, 29, 8)])
    (run / "versions.json").write_text(
        json.dumps({"sessions": [{"device": "cpu"}, {"device": "X"}]})
    )
    later = row()
    assert (later["best"], later["best_of"], later["device"]) == (29, 31, "X")
    assert later["seconds"] == 5
    assert later["trend"][-1] == [50, 1.0]
    # What has not changed is not read again.
    metrics(run, 6)
    assert row()["trend"][-1] == [60, 1.0]
