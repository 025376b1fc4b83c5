"""The matrix of versions: what is tried is what pyproject.toml promises, and the page shows it."""

import json
import re
import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import translation

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "compatibility.py"))


def test_the_oldest_versions_are_those_that_are_promised(script: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["train"]]
    stated = dict(line.split(">=") for line in lines if ">=" in line)
    oldest = script["COMBINATIONS"][0]
    for package in script["PACKAGES"]:
        assert getattr(oldest, package).startswith(stated[package] + ".")
    assert project["requires-python"] == f">={oldest.python}"
    newest = max(c.rpartition(".")[2] for c in project["classifiers"] if ":: 3." in c)
    assert any(c.python == f"3.{newest}" for c in script["COMBINATIONS"])


def test_the_page_shows_the_last_matrix(script: dict[str, Any]) -> None:
    rows = json.loads(script["KEPT"].read_text())
    assert script["table"](rows) in script["PAGE"].read_text()
    in_chinese = translation.chinese("compatibility", script["table"](rows))
    assert in_chinese in script["CHINESE_PAGE"].read_text()
    tried = [row for row in rows if "checks" in row]
    for what in ("python", "torch", "gymnasium"):
        assert len({row[what] for row in tried}) >= 2, f"two versions of {what}"
    for row in tried:
        assert all(text.startswith("ok") for text in row["checks"].values()), row["name"]


def test_failures_and_missing_versions_are_shown(script: dict[str, Any]) -> None:
    checks = dict.fromkeys(script["HEADINGS"], "ok: fine")
    row = {
        "name": "a",
        "python": "3.11.7",
        "torch": "2.6.0",
        "gymnasium": "1.1.0",
        "numpy": "2.0.0",
    }
    table = script["table"](
        [
            {**row, "checks": {**checks, "resume": "RuntimeError: no"}},
            {"name": "b", "python": "3.99", "missing": "there is no Python 3.99 on this machine"},
        ]
    )
    lines = table.splitlines()
    assert lines[2].count("**no**") == 1
    assert lines[2].count("yes") == 3
    assert "not run: there is no Python 3.99" in lines[3]
    assert len({line.count("|") for line in lines}) == 1


def test_rows_are_of_one_tree(script: dict[str, Any]) -> None:
    rows = [row for row in json.loads(script["KEPT"].read_text()) if "checks" in row]
    (source,) = {row["source"] for row in rows}
    assert re.fullmatch(r"[0-9a-f]{12}", source), "committed, without changes"


def test_pythons_of_pyenv_are_found(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest, by its number, although pyenv has not switched it on; no release candidate."""
    for version in ("3.13.2", "3.13.10", "3.13.11rc1", "3.1.99"):
        folder = tmp_path / "versions" / version / "bin"
        folder.mkdir(parents=True)
        (folder / "python3.13").touch()
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert script["interpreter_for"]("3.13") == str(
        tmp_path / "versions" / "3.13.10" / "bin" / "python3.13"
    )
    assert script["interpreter_for"]("3.14") == "3.14"


def test_wheels_of_an_earlier_run_are_not_tried(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = script["main"]
    old = tmp_path / "wheels" / "warpzone-1-cp312-abi3-linux_x86_64.whl"
    given = tmp_path / "given" / old.name
    for wheel in (old, given):
        wheel.parent.mkdir()
        wheel.touch()
    tried = []

    def attempt(combination: Any, work: Path, wheels: Path) -> dict[str, Any]:
        tried.append((wheels, sorted(wheels.glob("*.whl"))))
        return {"python": combination.python, "missing": "not tried here"}

    monkeypatch.setitem(main.__globals__, "attempt", attempt)
    only = ["compatibility.py", "--work", str(tmp_path), "--only", "newest, Python 3.14"]
    for words in ([], ["--wheels", str(given.parent)]):
        monkeypatch.setattr(sys, "argv", [*only, *words])
        assert main() == 1, "no row was tried"
    assert tried == [(old.parent, []), (given.parent, [given])]


def test_wheels_by_python(script: dict[str, Any], tmp_path: Path) -> None:
    for tag in ("cp311-cp311", "cp312-abi3"):
        (tmp_path / f"warpzone-1-{tag}-linux_x86_64.whl").touch()
    assert "cp311" in script["wheel_for"]("3.11", tmp_path).name
    assert "abi3" in script["wheel_for"]("3.14", tmp_path).name
