"""Reports of sweeps: everything is there, and nothing from the file gets out as HTML."""

import json
from pathlib import Path
from typing import Any

import pytest
from html_pages import EVIL, read

from warpzone.config import ConfigError
from warpzone.report.axes import Axis
from warpzone.report.page import make_search_page
from warpzone.report.search import is_search, search_sections
from warpzone.report.sweep import read_sweep


def trial(number: int, state: str, value: float | None, **changes: Any) -> dict[str, Any]:
    return {
        "number": number, "state": state, "value": value, "run": f"trial-{number:04d}",
        "params": {"lr": 10.0 ** -(number + 2), "algo": "ppo" if number else "a2c"},
        "curve": [[100, 1.0], [200, 2.0 + number]], "reason": "", "steps": 200,
        "gpu_seconds": 0.0, "seconds": 3.0, **changes,
    }  # fmt: skip


def record(**changes: Any) -> dict[str, Any]:
    return {
        "format": 1, "name": "mine", "objective": "start delays cleared at equal steps",
        "direction": "maximize", "sampler": "tpe", "pruner": "median", "max_steps": 200,
        "parameters": [
            {"name": "lr", "low": 1e-5, "high": 1e-2, "log": True, "choices": []},
            {"name": "algo", "low": None, "high": None, "log": False, "choices": ["ppo", "a2c"]},
        ],
        "trials": [trial(0, "complete", 2.0), trial(1, "complete", 7.0), trial(2, "pruned", None)],
        "best": 1, "command": "warpzone train --preset quick --lr 0.001",
        "importance": {"lr": 0.75, "algo": 0.25}, **changes,
    }  # fmt: skip


def page(folder: Path, **changes: Any) -> str:
    (folder / "sweep.json").write_text(json.dumps(record(**changes)))
    assert is_search(folder)
    return make_search_page(*search_sections(folder))


def test_the_page_has_curves_importance_coordinates_and_the_command(tmp_path: Path) -> None:
    text = page(tmp_path)
    found = read(text)
    shown = " ".join(found.text)
    assert "warpzone train --preset quick --lr 0.001" in shown
    for title in ("Importance", "Parallel coordinates", "Curves of all trials", "Best settings"):
        assert title in shown
    lines = [attributes for name, attributes in found.seen if name == "polyline"]
    # Three curves, and the two completed trials through three axes.
    assert [len((line["points"] or "").split()) for line in lines] == [2, 2, 2, 3, 3]
    colours = [line["stroke"] for line in lines[3:]]
    assert colours == ["hsl(0 62% 42%)", "hsl(120 62% 42%)"]
    assert read_sweep(tmp_path).ranked[0].number == 1
    bars = [float(a["width"] or 0) for name, a in found.seen if name == "rect"]
    assert bars[0] == pytest.approx(3 * bars[1], rel=0.01)


def test_small_values_are_good_where_steps_are_counted(tmp_path: Path) -> None:
    page(tmp_path, direction="minimize")
    assert read_sweep(tmp_path).ranked[0].number == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"name": EVIL},
        {"command": EVIL},
        {"objective": EVIL},
        {"importance": {EVIL: 1.0}},
        {"parameters": [{"name": EVIL, "low": 0, "high": 1, "log": False, "choices": []}]},
        {"trials": [trial(0, EVIL, 1.0, run=EVIL, reason=EVIL, params={"algo": EVIL})]},
    ],
)
def test_nothing_of_the_file_becomes_markup(tmp_path: Path, changes: dict[str, Any]) -> None:
    text = page(tmp_path, **changes)
    assert EVIL not in text
    assert not [name for name, _ in read(text).seen if name == "script"]


def test_a_sweep_that_has_just_begun(tmp_path: Path) -> None:
    text = page(tmp_path, trials=[], importance={}, command="", best=None)
    assert "no trial is complete yet" in text
    assert "too few trials" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"trials": 3},
        {"trials": [{"number": 1}]},
        {"parameters": [{"name": "lr"}]},
        {"importance": []},
        {"trials": [trial(0, "complete", 1.0, curve=[[1]])]},
    ],
)
def test_files_that_are_no_sweep_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"sweep\.json cannot be used"):
        page(tmp_path, **changes)


def test_places_on_axes() -> None:
    assert Axis("lr", 1e-4, 1e-2, log=True).place(1e-3) == pytest.approx(0.5)
    assert Axis("x", 0, 10).place(20) == 1.0
    assert Axis("a", choices=("x", "y")).place("y") == 0.75
    assert Axis("a", choices=("x", "y")).place("z") is None
    assert Axis("x", 0, 10).place("text") is None
