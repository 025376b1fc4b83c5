"""The shape of the source tree: who may import whom, and how long a file may be."""

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "warpzone"
ENGINE = ROOT / "engine"

#: Engine folder -> the engine folders whose headers it may include, besides its own.
INCLUDES = {
    "nes": set[str](),
    "native": {"nes"},
    "nespy": {"nes"},
    "game": {"nes", "native", "nespy"},
    "vec": {"nes", "native", "nespy", "game"},
}

PYTHON = sorted(PACKAGE.rglob("*.py"))
#: What no package holds but all may import: the engine, and what `warpzone` itself says.
COMMON = {"_engine", "__version__"}
#: Folders of tests/unit that mirror something beside the package.
BESIDE = {"delivery", "engine", "helpers", "scripts"}
CPP = sorted(path for path in ENGINE.rglob("*") if path.suffix in (".cpp", ".hpp"))


def folder_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def imported(path: Path) -> Iterator[str]:
    """The first component under `warpzone` of everything the file imports, wherever it does so."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} uses a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("warpzone."))


def identifier(path: Path) -> str:
    return str(path.relative_to(ROOT))


def drawn() -> dict[str, list[str]]:
    """The packages as ARCHITECTURE.md lists them, in order, each with what it imports."""
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("## The package")[2]
    packages: dict[str, list[str]] = {}
    importing = False
    for line in text.split("```")[1].strip().splitlines():
        if not line.startswith(" "):
            packages[line.split()[0]] = []
        importing = line.startswith(" ") and (importing or "<-" in line)
        if importing:
            packages[next(reversed(packages))] += line.replace("<-", "").split()
    return packages


def test_the_picture_is_the_import_graph() -> None:
    graph: dict[str, set[str]] = {folder_of(path): set() for path in PYTHON}
    for path in PYTHON:
        graph[folder_of(path)].update(imported(path))
    del graph[""]
    real = {folder: targets - {folder} - COMMON for folder, targets in graph.items()}
    shown = {folder: set(targets) for folder, targets in drawn().items()}
    assert real == shown, "ARCHITECTURE.md shows other packages or imports than there are"


@pytest.mark.parametrize("folder", drawn())
def test_import_law(folder: str) -> None:
    order = list(drawn())
    above = order[: order.index(folder)]
    wrong = [target for target in drawn()[folder] if target not in above]
    assert not wrong, f"{folder} may not import {wrong}: they do not stand above it"


def test_the_root_shows_the_package_and_no_more() -> None:
    assert [path.name for path in PACKAGE.glob("*.py")] == ["__init__.py"]
    assert set(imported(PACKAGE / "__init__.py")) <= {
        *("rom", "env", "config", "collect", "eval", "observers", "train"),
    }


def test_unit_tests_mirror_the_source() -> None:
    tests = ROOT / "tests" / "unit"
    strangers = {
        path.relative_to(tests).parent.as_posix()
        for path in tests.rglob("test_*.py")
        if not (PACKAGE / path.relative_to(tests).parent / "__init__.py").is_file()
    }
    assert strangers <= BESIDE
    assert [path.name for path in tests.glob("test_*.py")] == [Path(__file__).name]


@pytest.mark.parametrize("path", CPP, ids=identifier)
def test_include_law(path: Path) -> None:
    folder = path.relative_to(ENGINE).parts[0]
    text = path.read_text()
    included = set(re.findall(r'#include "(\w+)/', text))
    if folder in INCLUDES:
        assert included <= INCLUDES[folder] | {folder}
    if folder != "bindings":
        assert not re.search(r"#include [<\"](Python\.h|nanobind/)", text), "only bindings/ may"
        assert "bindings" not in included


def test_file_sizes() -> None:
    sources = [*PYTHON, *CPP, *sorted((ROOT / "tests").rglob("*.py"))]
    lines = {identifier(path): len(path.read_text().splitlines()) for path in sources}
    assert {name: count for name, count in lines.items() if count > 400} == {}
    assert statistics.median(lines.values()) < 150


def test_no_rom_in_the_tree() -> None:
    folders = [ROOT / name for name in ("benchmarks", "docs", "engine", "scripts", "src", "tests")]
    for path in (file for folder in folders for file in folder.rglob("*") if file.is_file()):
        with path.open("rb") as file:
            assert file.read(4) != b"NES\x1a", path
