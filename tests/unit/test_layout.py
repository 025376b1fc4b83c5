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

#: A folder may import folders of a lower number, and itself.
LAYERS = {"env": 0, "data": 1, "model": 1, "algo": 2, "train": 3, "dist": 4, "cli": 5}
#: It looks at run folders from outside; only a command may start it.
READER = "dashboard"
#: Engine folder -> the engine folders whose headers it may include, besides its own.
INCLUDES = {
    "nes": set[str](),
    "native": {"nes"},
    "nespy": {"nes"},
    "game": {"nes", "native", "nespy"},
    "vec": {"nes", "native", "nespy", "game"},
}

PYTHON = sorted(PACKAGE.rglob("*.py"))
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


@pytest.mark.parametrize("path", PYTHON, ids=identifier)
def test_import_law(path: Path) -> None:
    here = folder_of(path)
    for target in imported(path):
        if target == here:
            continue
        assert target != "cli", "nothing imports cli"
        if here in LAYERS and target in LAYERS:
            assert LAYERS[target] < LAYERS[here], f"{here} may not import {target}"
        assert target != READER or here == "cli", f"{here} may not import {target}"


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
