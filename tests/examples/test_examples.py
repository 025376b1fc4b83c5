"""Every example runs, on a small budget, and does what it is an example of."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from warpzone.cli.main import main as warpzone

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
#: What some need beside this package and its extra `train`.
NEEDS = {
    "with_stable_baselines3": "stable_baselines3",
    "with_torchrl": "torchrl",
    "with_rllib": "ray.rllib.algorithms.ppo",
}
OUT = pytest.CaptureFixture[str]
pytestmark = pytest.mark.filterwarnings("ignore")


def load(name: str) -> Any:
    """The module of an example; skipped where its library is not installed."""
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], exc_type=ImportError)
    return importlib.import_module(name)


@pytest.mark.parametrize("name", NAMES)
def test_it_explains_itself(name: str, capsys: OUT) -> None:
    module = load(name)
    with pytest.raises(SystemExit) as ended:
        module.main(["-h"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: ")
    # argparse breaks lines.
    assert " ".join(module.__doc__.splitlines()[0].split()) in " ".join(said.split())
    assert re.search(rf"^ *python examples/{name}\.py", module.__doc__, re.M)


def test_the_list_names_them_all() -> None:
    listed = re.findall(
        r"^\| \[`?(\w+)\.(?:py|ipynb)`?\]", (FOLDER / "README.md").read_text(), re.M
    )
    assert sorted(listed) == sorted([*NAMES, "colab"])


def test_the_five_lines_are_five() -> None:
    """Without flags and without what is printed: what a reader has to type."""
    tree = ast.parse((FOLDER / "five_lines.py").read_text())
    (play,) = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "play"
    ]
    loop = next(node for node in play.body if isinstance(node, ast.For))
    first = [node for node in play.body[1:4] if isinstance(node, ast.Assign)]
    assert len(first) + 1 + len(loop.body[:1]) == 5


def test_an_agent_plays() -> None:
    assert load("five_lines").main(["--steps", "60"]) > 300


def test_a_reward_of_ones_own_trains(tmp_path: Path) -> None:
    """Started as its first lines say."""
    words = ["--steps", "128", "--lanes", "4", "--rollout", "16", "--runs-dir", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(FOLDER / "own_reward.py"), *words],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "128 steps in" in done.stdout
    config = json.loads((tmp_path / "own-reward" / "config.json").read_text())
    assert config["reward"] == "own_reward:reward"


def test_a_reward_of_ones_own_counts_coins() -> None:
    before = {"coins": np.array([99, 3]), "y_pos": np.array([79, 79])}
    after = {"coins": np.array([1, 3]), "y_pos": np.array([99, 60])}
    step = SimpleNamespace(before=before, after=after, reward=np.array([0.5, -0.5]))
    step.terminated = np.array([False, False])
    assert load("own_reward").reward(step).tolist() == pytest.approx([0.5 + 1.0 + 0.2, -0.5])
    step.terminated = np.array([True, True])
    assert load("own_reward").reward(step).tolist() == [0.5, -0.5]


def test_a_network_of_ones_own_trains(tmp_path: Path) -> None:
    words = ["--steps", "64", "--lanes", "4", "--rollout", "16", "--runs-dir", str(tmp_path)]
    module = load("own_network")
    run = module.main(words)
    assert run.steps == 64
    assert type(run.agent.network.encoder).__name__ == "Patches"


def test_ppo_in_one_file_learns_the_right_numbers() -> None:
    """Its advantages are those of the definition, and an update changes the weights."""
    module = load("ppo_one_file")
    rewards = torch.tensor([[1.0], [2.0], [3.0]])
    values, ends = torch.tensor([[0.5], [0.4], [0.3]]), torch.tensor([[0.0], [1.0], [0.0]])
    found = module.advantages(rewards, values, ends, torch.tensor([0.2]), 0.9, 0.8)
    last = 3.0 + 0.9 * 0.2 - 0.3
    middle = 2.0 - 0.4
    first = 1.0 + 0.9 * 0.4 - 0.5 + 0.9 * 0.8 * middle
    assert found.flatten().tolist() == pytest.approx([first, middle, last])
    words = ["--steps", "256", "--lanes", "4", "--rollout", "32", "--epochs", "1"]
    assert all(0 < x < 3300 for x in module.main([*words, "--lr", "1e-3"]))


def test_stable_baselines3() -> None:
    module = load("with_stable_baselines3")
    words = ["--steps", "64", "--lanes", "4", "--rollout", "16", "--limit", "5"]
    model = module.main(words)
    assert model.num_timesteps == 64
    assert len(model.ep_info_buffer) >= 1
    assert "x_pos" in model.ep_info_buffer[0]


def test_torchrl() -> None:
    module = load("with_torchrl")
    returns = module.main(["--steps", "128", "--lanes", "4", "--rollout", "16", "--width", "4"])
    assert len(returns) == 2


@pytest.mark.long
def test_rllib() -> None:
    module = load("with_rllib")
    ray = pytest.importorskip("ray")
    try:
        assert module.main(["--iterations", "2", "--batch", "64"]) == [64, 128]
    finally:
        ray.shutdown()


def test_go_explore_gets_far_without_learning() -> None:
    explorer = load("go_explore").main(["--rounds", "40"])
    assert explorer.furthest > 1500
    assert len(explorer.archive) > 150


def test_go_explore_is_about_a_hundred_lines() -> None:
    tree = ast.parse((FOLDER / "go_explore.py").read_text())
    lines = (FOLDER / "go_explore.py").read_text().splitlines()
    main = next(node for node in tree.body if getattr(node, "name", "") == "main")
    assert isinstance(main, ast.FunctionDef)
    code = [line for line in lines[: main.lineno - 1] if line.strip() and line.strip()[0] != "#"]
    assert len(code) <= 100


def test_a_tool_assisted_search_beats_running_and_jumping(tmp_path: Path, capsys: OUT) -> None:
    module = load("tool_assisted")
    script = tmp_path / "tas.txt"
    best, plain = module.main(["--rounds", "40", "--beam", "16", "--out", str(script)])
    assert best.x > plain + 100
    # The buttons alone get there too: from the start, without a saved state.
    assert module.replay("1-1", best.buttons, 8) == best.x
    capsys.readouterr()
    assert warpzone(["play", "--script", str(script), "--stage", "1-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["x_pos"] == best.x


@pytest.mark.long
def test_go_explore_clears_a_stage() -> None:
    assert load("go_explore").main(["--rounds", "300"]).cleared
