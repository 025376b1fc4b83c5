"""The contract between Python and C++ (`_engine.pyi`) names what the engine really has."""

import ast
import enum
from pathlib import Path

import pytest

import warpzone
from warpzone import _engine

STUB = ast.parse((Path(warpzone.__file__).parent / "_engine.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
#: Structures whose fields are the arguments of their constructor.
STRUCTURES = ("ObserveSpec", "RewardWeights", "Rules", "LaneConfig", "StepTotals")


def names_of(body: list[ast.stmt]) -> set[str]:
    """What a module or class declares, without what is private."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def test_the_module() -> None:
    assert names_of(STUB.body) == {name for name in vars(_engine) if not name.startswith("_")}


@pytest.mark.parametrize("name", [name for name in CLASSES if not name.startswith("_")])
def test_every_class(name: str) -> None:
    bound = getattr(_engine, name)
    if issubclass(bound, enum.Enum):
        declared = {
            ast.unparse(node.targets[0]): ast.literal_eval(node.value)
            for node in CLASSES[name].body
            if isinstance(node, ast.Assign)
        }
        assert declared == {member.name: member.value for member in bound}
    else:
        has = {member for member in vars(bound) if not member.startswith("_")}
        assert names_of(CLASSES[name].body) == has


@pytest.mark.parametrize("name", STRUCTURES)
def test_structures_and_their_defaults(name: str) -> None:
    body = CLASSES[name].body
    init = next(node for node in body if isinstance(node, ast.FunctionDef))
    fields = [node.target.id for node in body if isinstance(node, ast.AnnAssign)]  # type: ignore[union-attr]
    assert init.name == "__init__"
    assert [argument.arg for argument in init.args.kwonlyargs] == fields
    made = getattr(_engine, name)()
    for field, default in zip(fields, init.args.kw_defaults, strict=True):
        if default is not None and ast.unparse(default) != "...":
            assert getattr(made, field) == eval(ast.unparse(default), vars(_engine)), field
