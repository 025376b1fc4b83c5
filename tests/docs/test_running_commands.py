"""The command blocks of guides and tutorials are run as they stand, page by page, in one folder.

What a page would take hours for is made small by flags behind its own, of which the last counts: a
narrow network, a few steps, one start delay (`tests/helpers/doc_reader.py`)."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from doc_reader import NOT_RUN, Reader, lines_of, smaller
from markdown_pages import ROOT, Block, all_pages, blocks, is_chinese
from small_world import enter, shrink, trained
from tiny_spaces import write

#: Pages whose commands are run, and the runs that they speak of without having trained them.
PAGES: dict[str, tuple[str, ...]] = {
    "README.md": ("runs/one",),
    "docs/containers.md": (),
    "docs/curriculum.md": (),
    "docs/evaluation.md": ("RUN", "runs/one"),
    "docs/installing.md": (),
    "docs/monitoring.md": ("runs/NAME",),
    "docs/operations.md": (),
    "docs/reports.md": ("RUN", "RUN1", "RUN2", "RUN3"),
    "docs/training.md": ("runs/NAME",),
    "docs/tutorial-1-1.md": (),
    "docs/tutorial-all-stages.md": (),
}
#: The same commands once more, or slow ones.
LONG: dict[str, tuple[str, ...]] = {
    "docs/agents.md": ("runs/mine",),
    "docs/backends.md": (),
    "docs/dashboard.md": ("runs/NAME",),
    "docs/export.md": ("RUN",),
    "docs/performance.md": ("runs/NAME",),
    "docs/plug-ins.md": (),
    "docs/runs.md": ("FOLDER/old", "RUN"),
    "docs/scaling.md": (),
    "docs/stability.md": (),
    "docs/start.md": (),
    "docs/sweeps.md": (),
    "docs/video-and-maps.md": ("RUN",),
}
FACTORY = """
import gymnasium, warpzone
def make_env():
    return gymnasium.make(
        "warpzone/SuperMarioBros-1-1-v0", actions=bytes(range(256)), layout="channels_last",
        frame_skip=1, frame_stack=1,
    )
"""


@pytest.fixture
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    enter(tmp_path, monkeypatch)
    shrink(monkeypatch, stuck_after=1)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("example"), "NAME")


def shell_blocks(name: str) -> list[Block]:
    return [block for block in blocks(name) if block.language in ("sh", "bash")]


@pytest.mark.usefixtures("small_world")
@pytest.mark.parametrize(
    "name", [*PAGES, *(pytest.param(name, marks=pytest.mark.long) for name in LONG)]
)
def test_a_page_works_as_it_is_written(name: str, finished_run: Path) -> None:
    for place in {**PAGES, **LONG}[name]:
        shutil.copytree(finished_run, place)
    shutil.copyfile(finished_run / "best.safetensors", "weights.safetensors")
    # What pages speak of: a space, a factory, and the scripts of this tree.
    write(Path("space.toml"))
    write(Path("members.toml"), space={"clip": {"low": 0.1, "high": 0.3}})
    Path("my_module.py").write_text(FACTORY)
    Path("scripts").symlink_to(ROOT / "scripts")
    reader = Reader()
    for block in shell_blocks(name):
        reader.read(block)
    assert reader.ran


def test_every_guide_is_run() -> None:
    with_commands = {
        name
        for name in all_pages()
        if re.fullmatch(r"docs/[\w-]+\.md", name) and not is_chinese(name) and shell_blocks(name)
    }
    # Its examples have a test of their own, tests/unit/observers/test_metrics_reading.py.
    others = {"docs/reading-metrics.md"}
    assert with_commands == (PAGES.keys() | LONG.keys() | others) - {"README.md"}


def test_what_is_not_run_has_a_reason_and_a_test() -> None:
    lines = [
        line.strip()
        for name in (*PAGES, *LONG)
        for block in shell_blocks(name)
        for line in lines_of(block.text)
    ]
    for pattern, reason in NOT_RUN.items():
        assert any(re.match(pattern, line) for line in lines), f"no page says {pattern}"
        assert (ROOT / reason.partition(": ")[2]).exists(), reason


@pytest.mark.usefixtures("small_world")
@pytest.mark.parametrize(
    "text",
    [
        "warpzone eval no-such-run\n",
        "tail -n 1 no-such-file | jq .\n",
        "echo",
    ],
)
def test_a_command_that_fails_would_be_noticed(text: str) -> None:
    with pytest.raises(AssertionError):
        Reader().read(Block("p.md", 1, "sh", text))


def test_lines() -> None:
    assert lines_of("a b \\\n  c  # d\n# e\njq 'x\n  | y' f\n") == [
        "a b    c  # d",
        "jq 'x\n  | y' f",
    ]
    assert smaller(["eval", "all", "--stages", "all"], 0)[-8:-6] == ["--stages", "4-3,8-4"]
    assert smaller(["train", "--resume", "x"], 1) == [
        "train",
        "--resume",
        "x",
        "--max-steps",
        "288",
    ]
