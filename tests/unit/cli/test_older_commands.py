"""docs/from-older-commands.md is true: its commands resolve, its flags and fields exist."""

import dataclasses
import re
import shlex
from pathlib import Path

import pytest

from warpzone.cli.flags import resolve, take, take_switch
from warpzone.config import TrainConfig, load_preset
from warpzone.metrics.schema import NAMES

PAGE = Path(__file__).parents[3] / "docs" / "from-older-commands.md"
TEXT = PAGE.read_text()
TRAIN = sorted(set(re.findall(r"`((?:[A-Z_]+=\S+ )*warpzone train(?: [^`]*)?)`", TEXT)))
TRAIN.remove("warpzone train --help")
FLAGS = {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(TrainConfig)}
FLAGS |= {f"--no-{flag[2:]}" for flag in FLAGS} | {"--dry-run", "--config-out"}
VARIABLES = re.compile(r"[A-Z_]+=")


def rows(title: str) -> list[list[str]]:
    """The first table below a title, without its head."""
    below = TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"(?:^\|.*\n)+", below, re.M)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the run that the page resumes."""
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "config.json").write_text(load_preset("quick").to_json())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUN_NAME", raising=False)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", TRAIN)
def test_commands_resolve(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(command)
    while VARIABLES.match(words[0]):
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    assert words[:2] == ["warpzone", "train"]
    given = words[2:]
    take_switch(given, "--dry-run")
    wanted = list(given)
    config = resolve(given, prog="warpzone train", about="")
    for name in ("num_envs", "rollout_steps", "max_steps", "actions", "run_name", "backend"):
        value = take(wanted, f"--{name.replace('_', '-')}")
        assert value is None or str(getattr(config, name)) == value


def test_there_are_commands() -> None:
    assert len(TRAIN) > 20


@pytest.mark.parametrize("title", ["Flags of training", "Environment variables"])
def test_flags_exist(title: str) -> None:
    for there, here, _ in rows(title):
        old = there if here == "same" and title.startswith("Flags") else ""
        for name in named(old) + named(here):
            assert name.split()[0] in FLAGS, name


def test_fields_exist() -> None:
    checked = 0
    for there, here, _ in rows("Metric fields"):
        cell = there if here == "same" else here
        if "/" in cell or here == "same there":
            continue
        for name in named(cell):
            assert name in NAMES, name
            checked += 1
    assert checked > 60


def test_variables_are_read() -> None:
    source = "".join(path.read_text() for path in (PAGE.parents[1] / "src").rglob("*.py"))
    for there, here, _ in rows("Environment variables"):
        if here == "same":
            assert all(name in source for name in named(there)), there


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)", TEXT))))
def test_links(target: str) -> None:
    assert (PAGE.parent / target).exists()
