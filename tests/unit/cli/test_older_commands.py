"""docs/from-older-commands.md is true: its commands resolve, its flags and fields exist."""

import dataclasses
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import Recorder

from warpzone.cli.flags import resolve, take, take_switch
from warpzone.cli.older import NOT_READ, READ
from warpzone.config import TrainConfig, load_preset
from warpzone.metrics.schema import NAMES
from warpzone.train.loop import Run

PAGE = Path(__file__).parents[3] / "docs" / "from-older-commands.md"
TEXT = PAGE.read_text()
TRAIN = sorted(set(re.findall(r"`((?:[A-Z_]+=\S+ )*warpzone train(?: [^`]*)?)`", TEXT)))
TRAIN.remove("warpzone train --help")
FLAGS = {f"--{field.name.replace('_', '-')}" for field in dataclasses.fields(TrainConfig)}
FLAGS |= {f"--no-{flag[2:]}" for flag in FLAGS} | {"--dry-run", "--config-out"}
VARIABLES = re.compile(r"[A-Z_]+=")
#: What makes a recipe small enough for a test: eight updates of a narrow network.
SMALL: dict[str, Any] = {
    "num_envs": 2, "groups": 1, "num_threads": 1, "rollout_steps": 32, "minibatch": 64,
    "grad_accum": 1, "epochs": 1, "max_steps": 8 * 64, "device": "cpu", "eval_interval": 0,
    "encoder_width": 0.125, "hidden_size": 16, "size": 36, "per_segments": 2,
    "per_memory_gb": 0.01, "parquet_interval": 0.0,
}  # fmt: skip


def rows(title: str) -> list[list[str]]:
    """The first table below a title, without its head."""
    below = TEXT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = re.findall(r"(?:^\|.*\n)+", below, re.M)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with the run that the page resumes and the module that it names."""
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    (tmp_path / "my_module.py").write_text("def make_env():\n    raise NotImplementedError\n")
    (run / "config.json").write_text(load_preset("quick").to_json())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUN_NAME", raising=False)


def resolved(command: str, monkeypatch: pytest.MonkeyPatch) -> tuple[TrainConfig, list[str]]:
    """What a command of the page means, and its flags."""
    words = shlex.split(command)
    while VARIABLES.match(words[0]):
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    assert words[:2] == ["warpzone", "train"]
    given = words[2:]
    take_switch(given, "--dry-run")
    wanted = list(given)
    return resolve(given, prog="warpzone train", about="", say=lambda _: None), wanted


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", TRAIN)
def test_commands_resolve(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, wanted = resolved(command, monkeypatch)
    for name in ("num_envs", "rollout_steps", "max_steps", "actions", "run_name", "backend"):
        value = take(wanted, f"--{name.replace('_', '-')}")
        assert value is None or str(getattr(config, name)) == value


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("command", [text for text in TRAIN if "--backend" not in text])
def test_recipes_learn_from_free_steps(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each as it stands, but for the size of network, rollout and budget: whatever forces steps,
    the policy soon has some of its own to learn from, and changes."""
    config, _ = resolved(command, monkeypatch)
    run = Run(config.replace(**SMALL, runs_dir=str(tmp_path / "new"), run_name="", resume="never"))
    shown = Recorder()
    before = run.agent.heads.policy.weight.detach().clone()
    try:
        run.learn(shown)  # type: ignore[arg-type]
    finally:
        run.collector.close()
    newest = shown.rows[-1]
    assert newest["forced_share"] < 0.5
    assert newest["entropy"] > 0.1
    assert newest["loss_policy"] != 0.0
    assert not torch.equal(before, run.agent.heads.policy.weight)


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


def test_variables_are_read_or_named() -> None:
    """No variable of the page is passed over without a word."""
    source = "".join(path.read_text() for path in (PAGE.parents[1] / "src").rglob("*.py"))
    known: set[str] = set()
    for there, here, _ in rows("Environment variables"):
        found = [name.replace("PHASEn", "PHASE1") for name in named(there)]
        known.update(found)
        if here == "same":
            assert all(name in source for name in found), there
        else:
            assert set(found) <= set(READ) | set(NOT_READ), there
    assert set(READ) <= known
    for name, field in READ.items():
        row = next(row for row in rows("Environment variables") if f"`{name}`" in row[0])
        assert f"`--{field.replace('_', '-')}`" in row[1]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)", TEXT))))
def test_links(target: str) -> None:
    assert (PAGE.parent / target).exists()
