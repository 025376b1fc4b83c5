"""Random changes of `make mutants`: what is changed, which are drawn, how they are judged."""

import ast
from pathlib import Path
from typing import Any

import pytest
from mutation import random_mutants
from mutation.mutations import Mutation, drawn, mutations_of
from mutation.random_mutants import PACKAGES, Task

ROOT = Path(__file__).parents[3]
SOURCE = '''"""A docstring with 1 number."""


def price(count: int, *, each: float = 2.5) -> float:
    """Of several things."""
    if count <= 0:
        raise ValueError(f"{count} is below 1")
    total = count * each
    total += min(count, 3)
    while not count:
        break
    self.seen = (total)
    log(total, "words")
    return -total
'''
CHANGES = {
    ("constant", "2.5", "5.0"),
    ("comparison", "<=", "<"),
    ("constant", "0", "1"),
    ("statement", 'raise ValueError(f"{count} is below 1")', "pass"),
    ("operator", "*", "/"),
    ("operator", "+=", "-="),
    ("statement", "total += min(count, 3)", "pass"),
    ("name", "min", "max"),
    ("arguments", "count, 3", "3, count"),
    ("constant", "3", "4"),
    ("negation", "not count", "count"),
    ("statement", "break", "continue"),
    ("statement", "self.seen = (total)", "pass"),
    ("statement", 'log(total, "words")', "pass"),
    ("arguments", 'total, "words"', '"words", total'),
    ("return", "-total", "None"),
    ("negation", "-total", "total"),
}


def test_what_is_changed() -> None:
    found = mutations_of("src/warpzone/algo/price.py", SOURCE)
    assert {(one.kind, one.old, one.new) for one in found} == CHANGES
    assert {one.place for one in found} == {"price"}
    assert {one.package for one in found} == {"algo"}
    for one in found:
        assert SOURCE.splitlines()[one.line - 1].find(one.old.split("(")[0]) >= 0
        changed = one.planted(SOURCE)
        ast.parse(changed)
        assert changed.replace(one.new, one.old, 1) != changed


def test_names_outlive_other_changes_of_the_file() -> None:
    before = mutations_of("src/warpzone/algo/price.py", SOURCE)
    moved = mutations_of("src/warpzone/algo/price.py", "import os\n\nBEFORE = 7\n" + SOURCE)
    names = [one.key for one in moved if one.place != "module"]
    assert names == [one.key for one in before]
    assert len(set(names)) == len(names)


def test_a_larger_draw_has_the_smaller_one_first() -> None:
    found = mutations_of("src/warpzone/algo/price.py", SOURCE)
    assert drawn(found, 5, 1) == drawn(found, 9, 1)[:5] != drawn(found, 5, 2)


@pytest.mark.parametrize("package", PACKAGES)
def test_changes_of_a_package_can_be_planted(package: str) -> None:
    found = random_mutants.mutations(ROOT, package)
    assert len(found) > 100
    assert len({one.key for one in found}) == len(found)
    for one in drawn(found, 40, 0):
        source = (ROOT / one.file).read_text()
        changed = one.planted(source)
        assert changed != source
        ast.parse(changed)


def test_tests_that_name_a_module_come_first() -> None:
    tests = random_mutants.tests_of(ROOT, "src/warpzone/train/budget.py", "train")
    assert tests[0] == "tests/unit/train/test_budget.py"
    assert set(PACKAGES["train"]) <= set(tests)
    for package, places in PACKAGES.items():
        assert all((ROOT / place).exists() for place in places), package


def test_equivalent_changes_are_still_there_and_have_a_reason() -> None:
    known = {one.key for package in PACKAGES for one in random_mutants.mutations(ROOT, package)}
    for key, why in random_mutants.equivalents(ROOT).items():
        assert key in known
        assert len(why.split()) > 4, key


def task(tmp_path: Path, old: str, new: str) -> tuple[Any, Task]:
    """A tree with one source and one test, and a change of it."""
    source = "WHY = 1\n\n\ndef add(a, b):\n    return a + b\n"
    (tmp_path / "source.py").write_text(source)
    (tmp_path / "test_source.py").write_text(
        "from source import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    )

    class Tree:
        place = tmp_path

        def settings(self) -> dict[str, str]:
            return {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    at = source.index(old)
    change = Mutation("source.py", "add", "operator", 5, at, at + len(old), old, new)
    return Tree(), Task(change, ("test_source.py",))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("+", "-", ("caught", "test_source.py::test_add")),
        ("WHY = 1", "WHY = 2", ("survived", "")),
        ("WHY = 1", "WHY = nothing", ("caught", "test_source.py")),
        ("return", "__import__('time').sleep(1000)\n    return", ("timeout", "")),
    ],
    ids=["caught", "survived", "import fails", "timeout"],
)
def test_verdicts(tmp_path: Path, old: str, new: str, expected: tuple[str, str]) -> None:
    tree, one = task(tmp_path, old, new)
    before = (tmp_path / "source.py").read_text()
    found = random_mutants.verdict(tree, one, 5.0 if expected[0] == "timeout" else 120.0)
    assert found == expected
    assert (tmp_path / "source.py").read_text() == before


def test_scores_leave_out_what_is_equivalent() -> None:
    results = {
        str(number): {"package": "algo", "result": result}
        for number, result in enumerate(["caught", "timeout", "survived", "survived"])
    }
    results["other"] = {"package": "run", "result": "caught"}
    # Noticed after all: it was not equivalent.
    table = random_mutants.scores(results, {"3": "why", "0": "why"})
    assert table["algo"] == {
        "changes": 4, "caught": 1, "timeout": 1, "survived": 1, "equivalent": 1, "score": 0.667,
    }  # fmt: skip
    assert table["run"]["score"] == 1.0
