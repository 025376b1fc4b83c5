"""`warpzone.train` and `warpzone.evaluate`, and plug-ins in a run: the examples of the guides."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from examples import code_in, files_in
from tiny_runs import tiny

import warpzone
from warpzone.cli.main import main
from warpzone.env import outside
from warpzone.eval import evaluate as protocol
from warpzone.media.video import VideoError
from warpzone.model.agent import Agent
from warpzone.model.memory import NoMemory

PLUGGED = {"reward": "coins:reward", "network": "small:Small", "observer": "entropy:StopWhenSure"}
WORDS = [word for name, value in PLUGGED.items() for word in (f"--{name}", value)]


@pytest.fixture(autouse=True)
def small_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder of its own with the guide's examples, three start delays, one thread."""
    for name, text in files_in("plug-ins.md").items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(outside, "agreed_folder", lambda: tmp_path / "agreed")
    monkeypatch.setattr(outside, "_agreed", set[str]())
    monkeypatch.setattr(outside, "_loaded", {})
    for name in ("bad", "coins", "entropy", "ground", "small", "whole"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    few = partial(protocol.evaluate, delays=(0, 30))
    monkeypatch.setattr("warpzone.train.evaluator.evaluate", few)
    monkeypatch.setattr(protocol, "STUCK_AFTER", 20)
    monkeypatch.setattr("warpzone.eval.best_video.write_best", no_video)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def no_video(*_: Any, **__: Any) -> None:
    raise VideoError("not here")


def rows(run: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / name).read_text().splitlines()]


def test_a_run_and_its_agent(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    class Counter(warpzone.Observer):
        def updated(self, run: Any, row: dict[str, Any], collected: Any) -> None:
            seen.append(row["global_step"])

    run = warpzone.train(tiny(run_name="mine"), observers=[Counter()], quiet=True)
    assert "step=" not in capfd.readouterr().err
    assert run.folder == Path("runs/mine")
    assert run.steps == 96
    assert seen == [32, 64, 96]
    assert run.config.run_name == "mine"
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.config = tiny()  # type: ignore[misc]
    assert str(run).startswith("runs/mine: 96 steps")
    assert {outcome.policy for outcome in run.outcomes} == {"argmax", "sampled"}
    env = run.agent.make_env(num_envs=2)
    obs, _ = env.reset(seed=0)
    assert run.agent.act(obs).shape == (2,)
    env.close()
    for agent in (run, run.agent, "mine", run.folder):
        found = warpzone.evaluate(agent, delays=(0,), policies=("argmax",))
        assert found.episodes() == 1
        assert found.episodes("sampled") == 0
        assert found.outcomes == warpzone.evaluate(run, delays=(0,), policies=("argmax",)).outcomes
        assert found.clears() == 0
        assert found.rate() == 0.0
        assert found.interval()[0] == 0.0
        assert [row.stage for row in found.stages] == ["1-1"]
        assert found.as_dict()["totals"]["argmax"]["episodes"] == 1
        assert str(found) == "argmax: 0 of 1 episodes reach the flag, 0.0%"
    # It goes on with its own configuration.
    longer = warpzone.train(resume="runs/mine", max_steps=128, quiet=True)
    assert longer.steps == 128
    assert longer.folder == run.folder
    assert longer.config.size == 36


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(warpzone.ConfigError, match=r"'max_step'; did you mean max_steps\?"):
        warpzone.train(max_step=3)
    with pytest.raises(warpzone.ConfigError, match="a configuration or a preset, not both"):
        warpzone.train(tiny(), preset="quick")
    with pytest.raises(ValueError, match="policies are argmax and sampled, not 'best'"):
        warpzone.evaluate("all", policies=("best",))


def test_the_preset_follows_from_what_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpzone.train import api

    asked: list[Any] = []

    def stop(config: Any, *_: Any) -> Any:
        asked.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "train_session", stop)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for fields in ({"stages": "1-2"}, {"stages": "all"}, {"preset": "quick", "seed": 9}):
        with pytest.raises(KeyboardInterrupt):
            warpzone.train(quiet=True, **fields)
    one, many, named = asked
    assert (one.stages, one.size, one.stop_at > 0) == ("1-2", 42, True)
    assert many.stages == "all"
    assert many.archive_share > 0
    assert named.seed == 9
    assert named.stages == "1-1"


def test_the_function_can_be_inspected() -> None:
    names = list(inspect.signature(warpzone.train).parameters)
    assert names == ["config", "preset", "observers", "quiet", "fields"]


def test_names_are_loaded_lazily() -> None:
    code = (
        "import sys, os, warpzone\n"
        "assert set(warpzone.__all__) <= set(dir(warpzone))\n"
        "config = warpzone.TrainConfig(stages='1-2')\n"
        "assert 'torch' not in sys.modules and 'OMP_WAIT_POLICY' not in os.environ\n"
        "import warpzone.train as module\n"
        "assert callable(warpzone.train) and module is warpzone.train\n"
        "from warpzone import train, evaluate, Trained\n"
        "assert callable(train) and os.environ['OMP_WAIT_POLICY'] == 'PASSIVE'\n"
    )
    environment = {name: v for name, v in os.environ.items() if name != "OMP_WAIT_POLICY"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)


def test_the_guide_to_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With little to do: the numbers in the example are large."""
    (code,) = code_in("python.md")
    small = tiny().__dict__ | {"runs_dir": "runs"}
    names = ("num_envs", "rollout_steps", "minibatch", "groups", "size", "hidden_size", "device")
    few = "".join(f", {name}={small[name]!r}" for name in names)
    code = code.replace("max_steps=1_000_000", f"max_steps=96{few}").replace('"1-1..1-4"', '"1-1"')
    monkeypatch.setattr("warpzone.eval.loaded.DELAYS", (0,))
    whole = protocol.evaluate
    monkeypatch.setattr(
        "warpzone.eval.loaded.evaluate", lambda *a, **k: whole(*a, **{**k, "delays": (0,)})
    )
    exec(compile(code, "python.md", "exec"), {})
    assert (Path("runs/mine") / "best.safetensors").is_file()


# --- plug-ins -------------------------------------------------------------------------------------
def tiny_words(**more: Any) -> list[str]:
    values = {
        "num-envs": 4,
        "rollout-steps": 8,
        "minibatch": 16,
        "epochs": 1,
        "size": 36,
        "hidden-size": 16,
        "stagnation-limit": 3,
        "max-steps": 96,
        "device": "cpu",
        "seed": 7,
        "preset": "quick",
        "stop-at": 0,
        **more,
    }
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def said(capsys: pytest.CaptureFixture[str], words: list[str], code: int) -> str:
    assert main(words) == code
    output = capsys.readouterr()
    return output.out + output.err


def test_plug_ins_of_the_guide_from_start_to_evaluation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said(capsys, ["train", *tiny_words(**{"run-name": "mine"}), *WORDS], 0)
    run = Path("runs/mine")
    config = json.loads((run / "config.json").read_text())
    assert {name: config[name] for name in PLUGGED} == PLUGGED
    assert config["plugins_sha256"].count("=") == 3
    assert all("sureness" in row for row in rows(run, "metrics.jsonl"))
    agent = warpzone.load_agent("mine").network
    assert type(agent.encoder).__name__ == "Small"
    # Resumed and evaluated without a word about them.
    said(capsys, ["train", "--resume", "runs/mine", "--max-steps", "128"], 0)
    said(capsys, ["eval", "mine", "--delays", "0", "--policy", "argmax"], 0)

    Path("small.py").write_text(Path("small.py").read_text() + "\n# Changed\n")
    Path("coins.py").write_text(Path("coins.py").read_text() + "\n# Changed\n")
    for words in (["train", "--resume", "runs/mine", "--max-steps", "160"], ["eval", "mine"]):
        assert "the network small:Small has changed" in said(capsys, words, 2)
    named = ["--network", "small:Small"]
    said(capsys, ["eval", "mine", "--delays", "0", "--policy", "argmax", *named], 0)
    again = ["train", "--resume", "runs/mine", "--max-steps", "160", *named]
    assert "the reward coins:reward has changed" in said(capsys, again, 2)
    said(capsys, [*again, "--reward", "coins:reward"], 0)

    Path("small.py").unlink()
    text = said(capsys, ["eval", "mine"], 2)
    assert "the network small:Small is missing" in text


def test_somebody_elses_run_brings_no_code_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, ["train", *tiny_words(**{"run-name": "mine"}), *WORDS[2:4]], 0)
    for file in Path("agreed").iterdir():
        file.unlink()
    outside._agreed.clear()
    Path("theirs.toml").write_text("network = 'small:Small'\n")
    for words in (["eval", "mine"], ["train", "--resume", "runs/mine", "--max-steps", "160"]):
        assert "small.py that you have not used yet" in said(capsys, words, 2)
    assert "not used yet" in said(capsys, ["train", "--preset", "theirs.toml"], 2)


def test_the_reward_is_the_functions(tmp_path: Path) -> None:
    """Before and after of every step, over ends of episodes, and through a resume."""
    Path("ground.py").write_text(
        "import numpy as np\n"
        "def reward(step):\n"
        "    assert not step.after['x_pos'].flags.writeable\n"
        "    moved = step.after['steps'] - step.before['steps']\n"
        "    assert (moved == 1).all(), moved\n"
        "    return np.where(step.terminated | step.truncated, -1.0, 0.25)\n"
    )
    run = warpzone.train(tiny(reward="ground:reward", run_name="one"), quiet=True)
    episodes = rows(run.folder, "episodes.jsonl")
    assert episodes
    for episode in episodes:
        assert episode["episode_return"] == 0.25 * (episode["steps"] - 1) - 1.0
    more = warpzone.train(resume="runs/one", max_steps=160, quiet=True)
    whole = warpzone.train(tiny(reward="ground:reward", run_name="two", max_steps=160), quiet=True)
    for file in ("episodes.jsonl",):
        keys = ("lane", "steps", "episode_return")
        first, second = (
            [[row[key] for key in keys] for row in rows(made.folder, file)]
            for made in (more, whole)
        )
        assert first == second


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return 1.0", "must give 2 numbers, one for each lane"),
        ("return np.full(2, np.nan)", "numbers that are not finite"),
        ("return ['a', 'b']", "must give 2 numbers"),
    ],
)
def test_rewards_that_are_none(body: str, sentence: str) -> None:
    Path("bad.py").write_text(f"import numpy as np\ndef reward(step):\n    {body}\n")
    with pytest.raises(RuntimeError, match=sentence):
        warpzone.train(tiny(reward="bad:reward"), quiet=True)


@pytest.mark.parametrize(
    ("field", "body", "sentence"),
    [
        ("network", "found = 3", "is no class of torch.nn.Module"),
        ("network", "class found(nn.Module):\n    pass", "does not work: "),
        (
            "network",
            "class found(nn.Module):\n"
            "    def __init__(self, spec):\n        super().__init__()\n"
            "        self.layer = nn.Linear(4, 4)\n"
            "    def forward(self, x):\n        return x.flatten(1).float()\n",
            r"must turn uint8 \[2, 4, 36, 36\] into \[2, 2\] features, and makes \[2, 5184\]",
        ),
        ("observer", "def found():\n    pass", "is no class of warpzone.Observer"),
        (
            "observer",
            "import warpzone\nclass found(warpzone.Observer):\n    def __init__(self, x): pass\n",
            "cannot be made",
        ),
        ("reward", "found = 3", "is no function"),
    ],
)
def test_plug_ins_that_are_none(field: str, body: str, sentence: str) -> None:
    Path("bad.py").write_text(f"from torch import nn\n{body}\n")
    with pytest.raises(warpzone.ConfigError, match=sentence):
        warpzone.train(tiny(**{field: "bad:found"}), quiet=True)


def test_a_whole_network(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("whole.py").write_text(
        "import torch\n"
        "from warpzone.model.agent import Agent, Output\n"
        "class Whole(Agent):\n"
        "    '''Prefers the second action.'''\n"
        "    def act(self, obs, previous_action, state, starts):\n"
        "        return self._more(super().act(obs, previous_action, state, starts))\n"
        "    def forward(self, obs, previous_action, state, starts):\n"
        "        return self._more(super().forward(obs, previous_action, state, starts))\n"
        "    def _more(self, output):\n"
        "        logits = output.logits.clone()\n"
        "        logits[..., 1] += 100\n"
        "        return Output(logits, output.value, output.state)\n"
    )
    run = warpzone.train(tiny(network="whole:Whole"), quiet=True)
    assert isinstance(run.agent.network, Agent)
    assert type(run.agent.network) is not Agent
    assert isinstance(run.agent.network.memory, NoMemory)
    env = run.agent.make_env(num_envs=3)
    obs, _ = env.reset(seed=0)
    assert (run.agent.act(obs) == np.ones(3)).all()
    env.close()
