"""Reports of populations: the lineage is drawn, and nothing from the file gets out as HTML."""

import json
from pathlib import Path
from typing import Any

import pytest
from html_pages import EVIL, read

from warpzone.config import ConfigError
from warpzone.report.page import make_search_page
from warpzone.report.population import read_population
from warpzone.report.search import is_search, search_sections


def run(name: str, member: int, parent: str | None, step: int, *values: float) -> dict[str, Any]:
    settings = {"lr": 0.001 * (member + 1), "algo": "ppo"}
    points = [
        {"step": step + 100 * (count + 1), "value": value, "settings": settings}
        for count, value in enumerate(values)
    ]
    return {"run": name, "member": member, "parent": parent, "step": step, "settings": settings,
            "points": points}  # fmt: skip


def record(**changes: Any) -> dict[str, Any]:
    runs = [
        run("member-00", 0, None, 0, 1.0, 2.0, 3.0),
        run("member-01", 1, None, 0, 0.5),
        run("member-01-2", 1, "member-00", 100, 4.0, 9.0),
        run("member-02", 2, None, 0, 0.7, 0.8),
        run("member-02-2", 2, "member-01-2", 200, 5.0),
    ]
    return {
        "format": 1, "name": "mine", "objective": "start delays cleared", "direction": "maximize",
        "max_steps": 300, "members": 3, "exchange": 100, "parameters": ["lr", "algo"],
        "runs": runs, "command": "warpzone train --lr 0.002",
        "best": {"value": 9.0, "step": 300, "run": "member-01-2", "settings": {}}, **changes,
    }  # fmt: skip


def page(folder: Path, **changes: Any) -> str:
    (folder / "population.json").write_text(json.dumps(record(**changes)))
    assert is_search(folder)
    return make_search_page(*search_sections(folder))


def test_the_lineage_is_drawn(tmp_path: Path) -> None:
    found = read(page(tmp_path))
    shown = " ".join(found.text)
    assert "warpzone train --lr 0.002" in shown
    lines = [a for name, a in found.seen if name == "line" and "stroke-width" in a]
    # A row for each run, and a line from its parent for each of the two that have one.
    assert len(lines) == 7
    down = [line for line in lines if line["x1"] == line["x2"]]
    assert len(down) == 2
    # All that descends from member 0 has its colour; member 2 came to it through member 1.
    colours = [line["stroke"] for line in lines]
    assert colours[0] == colours[2] == colours[3] == colours[5] == colours[6]
    assert colours[1] != colours[0]
    assert colours[4] not in (colours[0], colours[1])
    # The best run and what it descends from are thick.
    assert [line["stroke-width"] for line in lines] == ["5", "2", "5", "5", "2", "2", "2"]


def test_ancestors(tmp_path: Path) -> None:
    page(tmp_path)
    data = read_population(tmp_path)
    assert data.ancestors("member-02-2") == ["member-02-2", "member-01-2", "member-00"]
    assert data.ancestors("nobody") == []


def test_a_circle_of_descent_ends(tmp_path: Path) -> None:
    runs = [run("a", 0, "b", 0, 1.0), run("b", 1, "a", 0, 1.0)]
    page(tmp_path, runs=runs, best=None)
    assert read_population(tmp_path).ancestors("a") == ["a", "b"]


@pytest.mark.parametrize(
    "changes",
    [
        {"name": EVIL},
        {"command": EVIL},
        {"parameters": [EVIL]},
        {"best": {"run": EVIL, "value": EVIL}},
        {"runs": [{**run("a", 0, EVIL, 0, 1.0), "run": EVIL, "settings": {"lr": EVIL}}]},
    ],
)
def test_nothing_of_the_file_becomes_markup(tmp_path: Path, changes: dict[str, Any]) -> None:
    text = page(tmp_path, **changes)
    assert EVIL not in text
    assert not [name for name, _ in read(text).seen if name == "script"]


def test_a_population_that_has_just_begun(tmp_path: Path) -> None:
    text = page(tmp_path, runs=[], best=None, command="")
    assert "no member has begun yet" in text


@pytest.mark.parametrize(
    "changes",
    [{"format": 2}, {"runs": 3}, {"runs": [{"run": "a"}]}, {"parameters": None}, {"best": 3}],
)
def test_files_that_are_no_population_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"population\.json cannot be used"):
        page(tmp_path, **changes)
