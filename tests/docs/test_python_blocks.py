"""Python blocks of README and the pages run, in order, with little to do: training stops after
three updates of a narrow network, and evaluations look at one start delay.

A comment above a block says what differs: `<!-- before: code -->` runs first, `<!-- tested by:
file -->` names the test that runs it, `<!-- not run: reason -->` is for the rest."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from markdown_pages import ROOT, Block, all_pages, blocks, is_chinese
from small_world import enter, shrink, trained
from tiny_runs import tiny

from warpzone.train import api

PAGES = [name for name in all_pages() if re.match(r"README\.md|docs/|examples/", name)]
PYTHON = {
    name: found
    for name in PAGES
    if not is_chinese(name)
    and (found := [block for block in blocks(name) if block.language == "python"])
}
#: What makes a run of an example a small one.
SMALL = (
    *("num_envs", "groups", "num_threads", "rollout_steps", "minibatch", "epochs", "size"),
    *("encoder_width", "hidden_size", "stagnation_limit", "max_steps", "device"),
)


@pytest.fixture
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with the plug-ins of the guide, and training that is over at once."""
    enter(tmp_path, monkeypatch)
    shrink(monkeypatch)
    small = {name: getattr(tiny(), name) for name in SMALL}
    whole = api.train

    def train(*args: Any, **fields: Any) -> Any:
        return whole(*args, **{**fields, **small}, quiet=True)

    monkeypatch.setattr(api, "train", train)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that examples call runs/NAME."""
    return trained(tmp_path_factory.mktemp("example"), "NAME")


def run_blocks(found: list[Block]) -> None:
    """Runs the blocks of a page one after another, with the same names."""
    names: dict[str, Any] = {"__name__": "example"}
    for block in found:
        if block.mark in ("not run", "tested by"):
            continue
        if block.mark == "before":
            exec(compile(block.note, f"{block} before", "exec"), names)
        # The lines of the page, so that a traceback names them.
        text = "\n" * block.line + block.text
        exec(compile(text, block.page, "exec"), names)
    for value in names.values():
        if isinstance(value, gymnasium.Env | gymnasium.vector.VectorEnv):
            value.close()


@pytest.mark.usefixtures("small_world")
@pytest.mark.parametrize("name", PYTHON)
def test_python_blocks(name: str, finished_run: Path) -> None:
    shutil.copytree(finished_run, Path("runs/NAME"))
    run_blocks(PYTHON[name])


@pytest.mark.parametrize("block", [b for found in PYTHON.values() for b in found], ids=str)
def test_blocks_that_are_not_run_say_why(block: Block) -> None:
    if block.mark == "not run":
        assert len(block.note.split()) > 2
    elif block.mark == "tested by":
        assert Path(block.page).name in (ROOT / block.note).read_text()


def test_few_blocks_are_not_run() -> None:
    found = [block for page in PYTHON.values() for block in page]
    assert len(found) > 20
    assert sum(block.mark == "not run" for block in found) <= 3


def test_a_block_that_fails_would_be_noticed() -> None:
    page = "# P\n\n<!-- before: b = 1 -->\n```python\na = b\n```\n\n```python\nassert a == 2\n```\n"
    found = blocks("p.md", page)
    assert [(block.mark, block.note) for block in found] == [("before", "b = 1"), ("", "")]
    with pytest.raises(AssertionError):
        run_blocks(found)
    run_blocks(found[:1])
