"""The command blocks of guides and tutorials are run as they stand, page by page, in one folder.

What a page would take hours for is made small by flags behind its own, of which the last counts: a
narrow network, a few steps, one start delay. `test_commands.py` checks all other pages."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from markdown_pages import Block, all_pages, blocks, is_chinese
from shell_blocks import commands, own_words, without_options
from small_world import enter, shrink, trained

from warpzone.cli.main import main

#: Pages whose commands are run, and the runs that they speak of without having trained them.
PAGES: dict[str, tuple[str, ...]] = {
    "README.md": ("runs/one",),
    "docs/curriculum.md": (),
    "docs/evaluation.md": ("RUN", "runs/one"),
    "docs/operations.md": (),
    "docs/reports.md": ("RUN", "RUN1", "RUN2", "RUN3"),
    "docs/training.md": ("runs/NAME",),
    "docs/tutorial-1-1.md": (),
    "docs/tutorial-all-stages.md": (),
}
#: The same commands once more, or slow ones.
LONG: dict[str, tuple[str, ...]] = {
    "docs/agents.md": ("runs/mine",),
    "docs/export.md": ("RUN",),
    "docs/plug-ins.md": (),
    "docs/runs.md": ("FOLDER/old", "RUN"),
    "docs/start.md": (),
    "docs/video-and-maps.md": ("RUN",),
}
#: What a page says that is not run here, and why.
NOT_RUN = {
    r"warpzone (dashboard|train --dashboard)": "serves on: tests/e2e/test_cli_dashboard.py",
    r"warpzone play (?!.*--out)": "opens a window: tests/e2e/test_cli_play.py",
    r"warpzone rom install|warpzone doctor": "about the machine: tests/e2e/test_wheel.py",
    r"warpzone hub": "speaks with a server: tests/e2e/test_cli_hub.py",
    r"(pip|make|source|hf|python) ": "sets up a machine, or changes this tree",
}
NETWORK = ["--size", "36", "--encoder-width", "0.125", "--hidden-size", "16"]
LANES = ["--num-envs", "4", "--groups", "2", "--num-threads", "1", "--rollout-steps", "8"]
STEPS = [*LANES, "--minibatch", "16", "--epochs", "1", "--stagnation-limit", "3"]
STEPS += ["--device", "cpu", "--max-steps"]
#: Of agents that play well, fewer stages.
FEW = {"eval": ["--stages", "4-3,8-4"], "video": ["--stage", "1-1..1-2", "--mosaic", "2x1"]}
PLAY = {
    "eval": ["--device", "cpu", "--delays", "0", "--stuck-after", "1"],
    "video": ["--device", "cpu", "--stuck-after", "1", "--scale", "1", "--slow", "1"],
}


def smaller(words: list[str], resumed: int) -> list[str]:
    """The command with the flags that make it small; a run that is resumed goes further."""
    command = words[0]
    if command == "train" and "--dry-run" not in words:
        if "--resume" in words and "auto" not in words:
            return [*words, "--max-steps", str(96 * (resumed + 2))]
        if "--init" in words:  # the network is the agent's, and large
            return [*words, *STEPS, "32"]
        # The other way to train what the pages call `everything`.
        name = ["--run-name", "on-a-cpu"] if "all-cpu" in words else []
        return [*words, *name, *STEPS, "96", *NETWORK]
    few = FEW.get(command, []) if words[1:2] == ["all"] else []
    return [*words, *few, *PLAY.get(command, [])]


def lines_of(text: str) -> list[str]:
    """The lines of a block; one that ends in a backslash goes on, and so does one that is open."""
    found: list[str] = []
    rest = ""
    for line in re.sub(r"\\\n", " ", text).splitlines():
        rest += line
        try:
            parsed = commands(rest)
        except ValueError:
            rest += "\n"
            continue
        found += [rest] if parsed else []
        rest = ""
    return found


class Reader:
    """Somebody who types what a page says, in a folder of their own."""

    def __init__(self) -> None:
        self.resumed = 0
        self.ran: list[str] = []

    def read(self, block: Block) -> None:
        shell: list[str] = []
        for line in lines_of(block.text):
            if any(re.match(pattern, line.strip()) for pattern in NOT_RUN):
                continue
            if line.startswith("warpzone"):
                line = without_options(line)
            parsed = [own_words(words) for words in commands(line)]
            if all(words is not None for words in parsed):
                for words in parsed:
                    self.type(block, words or [])
            else:
                shell.append(line)
        if shell:
            self.ask_shell(block, shell)

    def type(self, block: Block, words: list[str]) -> None:
        told = smaller([self.meant(word) for word in words], self.resumed)
        assert main(told) == 0, f"{block}: warpzone {' '.join(told)}"
        self.ran.append(" ".join(words))
        self.resumed += "--resume" in words
        for flag in ("--out", "--json", "--onnx", "--torch"):
            if flag in told[:-1] and not told[(at := told.index(flag)) + 1].startswith("-"):
                assert os.path.getsize(told[at + 1]) > 0, f"{block}: {told[at + 1]}"

    def meant(self, word: str) -> str:
        if word == "PATH":
            return str(next(Path("RUN/checkpoints").glob("*.json")))
        return word

    def ask_shell(self, block: Block, lines: list[str]) -> None:
        if shutil.which("jq") is None:
            pytest.skip("jq is not installed")
        script = ["bash", "-euo", "pipefail", "-c", "\n".join(lines)]
        done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{block}: {done.stderr}"
        assert done.stdout.strip(), f"{block} says nothing"
        self.ran += lines


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
    reader = Reader()
    for block in shell_blocks(name):
        reader.read(block)
    assert reader.ran


def test_few_guides_are_not_run() -> None:
    """Pages about installing, containers, many machines and servers have tests of their own."""
    others = {
        *("backends", "containers", "dashboard", "installing", "monitoring", "scaling"),
        *("performance", "reading-metrics", "stability", "sweeps"),
    }
    with_commands = {
        name
        for name in all_pages()
        if re.fullmatch(r"docs/[\w-]+\.md", name) and not is_chinese(name) and shell_blocks(name)
    }
    assert with_commands - PAGES.keys() - LONG.keys() == {f"docs/{name}.md" for name in others}


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
