"""`warpzone.load_agent`: it plays what an evaluation plays, and refuses what it cannot see."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from small_agents import ship, small_run

import warpzone
from warpzone.eval.cases import Outcome
from warpzone.eval.loaded import LoadedAgent

ROOT = Path(__file__).parents[3]


def load(folder: Path, name: str = "one", policy: str = "argmax", **changes: Any) -> LoadedAgent:
    small_run(folder / name, **changes)
    return warpzone.load_agent(name, runs_dir=folder, policy=policy)


def played(agent: LoadedAgent, stages: str, steps: int) -> NDArray[np.int64]:
    """Actions of one lane for each stage, [steps, lanes]."""
    names = stages.split(",")
    env = agent.make_env(len(names), [[name] for name in names], num_threads=1, rom="eu")
    try:
        obs, _ = env.reset(seed=0)
        actions = []
        for _ in range(steps):
            actions.append(agent.act(obs))
            obs, _, terminated, truncated, _ = env.step(actions[-1])
            agent.reset(terminated | truncated)
    finally:
        env.close()
    return np.array(actions)


def test_it_plays_the_episode_of_an_evaluation(tmp_path: Path) -> None:
    agent = load(tmp_path, memory="gru", previous_action=True, actions="complex")
    (outcome,) = agent.evaluate("1-3", delays=[7], policies=["argmax"], rom="eu")
    assert isinstance(outcome, Outcome)
    seeds = 40
    env = agent.make_env(seeds, "1-3", num_threads=1, rom="eu", start_delay=(0, 30))
    try:
        obs, infos = env.reset(seed=1)
        (lane, *_) = np.flatnonzero(infos["start_delay"] == 7)
        total, furthest = 0.0, 0
        for _ in range(outcome.steps):
            obs, rewards, terminated, truncated, infos = env.step(agent.act(obs))
            agent.reset(terminated | truncated)
            total += float(rewards[lane])
    finally:
        env.close()
    if outcome.reason == "death":
        assert terminated[lane]
        furthest = int(infos["final_info"]["furthest_x"][lane])
    else:
        furthest = int(infos["furthest_x"][lane])
    assert furthest == outcome.furthest_x
    assert total == pytest.approx(outcome.episode_return)


@pytest.mark.parametrize("memory", ["none", "gru", "lstm", "gtrxl"])
def test_lanes_do_not_know_each_other(tmp_path: Path, memory: str) -> None:
    agent = load(tmp_path, memory=memory, previous_action=True)
    together = played(agent, "1-1,1-2,1-3", 40)
    agent.reset()
    alone = played(agent, "1-2", 40)
    np.testing.assert_array_equal(together[:, 1], alone[:, 0])


def test_memory_and_previous_action_are_kept_and_dropped(tmp_path: Path) -> None:
    agent = load(tmp_path, memory="gru", previous_action=True)
    rng = np.random.default_rng(0)
    shown = rng.integers(0, 256, (6, 2, 4, 36, 36), dtype=np.uint8)
    logits: list[NDArray[np.float64]] = []
    decide = agent._decide
    agent._decide = lambda seen: logits.append(decide(seen)) or logits[-1]  # type: ignore[method-assign, func-returns-value]
    for obs in (*shown[:3], shown[0]):
        agent.act(obs)
    fresh, remembered = logits[0], logits[3]
    assert not np.array_equal(fresh, remembered)
    agent.act(shown[0], np.array([True, False]))
    np.testing.assert_array_equal(logits[4][0], fresh[0])
    assert not np.array_equal(logits[4][1], fresh[1])
    agent.reset(np.array([False, True]))
    agent.act(shown[0])
    np.testing.assert_array_equal(logits[5][1], fresh[1])
    assert not np.array_equal(logits[5][0], fresh[0])
    agent.reset()
    agent.act(shown[0])
    np.testing.assert_array_equal(logits[6], fresh)


def test_one_lane_without_its_axis(tmp_path: Path) -> None:
    agent = load(tmp_path)
    env = warpzone.MarioEnv(size=36, mask_status_bar=True, rom="eu")
    try:
        obs, _ = env.reset(seed=0)
        action = agent.act(obs)
        assert action.shape == ()
        obs, *_ = env.step(int(action))
    finally:
        env.close()
    assert agent.act(obs).shape == ()


def test_sampling_goes_by_its_seed(tmp_path: Path) -> None:
    small_run(tmp_path / "one")
    obs = np.zeros((64, 4, 36, 36), np.uint8)

    def drawn(seed: int) -> list[int]:
        agent = warpzone.load_agent("one", policy="sampled", seed=seed, runs_dir=tmp_path)
        return [int(action) for _ in range(2) for action in agent.act(obs)]

    assert drawn(3) == drawn(3)
    assert drawn(3) != drawn(4)
    assert len(set(drawn(3))) > 1


def test_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = load(tmp_path)
    for obs, sentence in (
        (np.zeros((1, 4, 84, 84), np.uint8), r"sees uint8 \[lanes, 4, 36, 36\], not uint8 \[1, 4"),
        (np.zeros((1, 4, 36, 36), np.float32), "not float32"),
        (np.zeros((0, 4, 36, 36), np.uint8), r"not uint8 \[0, 4, 36, 36\]"),
    ):
        with pytest.raises(ValueError, match=sentence):
            agent.act(obs)
    agent.act(np.zeros((2, 4, 36, 36), np.uint8))
    with pytest.raises(ValueError, match=r"plays 2 lanes and is shown 3; call reset\(\)"):
        agent.act(np.zeros((3, 4, 36, 36), np.uint8))
    with pytest.raises(ValueError, match="one bool for each of the 2 lanes"):
        agent.reset(np.array([True]))
    with pytest.raises(ValueError, match="one bool for each of the 2 lanes"):
        agent.act(np.zeros((2, 4, 36, 36), np.uint8), np.array([0, 1]))
    with pytest.raises(ValueError, match="policy must be argmax or sampled, not 'best'"):
        warpzone.load_agent("one", runs_dir=tmp_path, policy="best")
    with pytest.raises(ValueError, match="cannot be put on device 'none'"):
        warpzone.load_agent("one", runs_dir=tmp_path, device="none")
    with pytest.raises(ValueError, match=r"did you mean all\?"):
        warpzone.load_agent("al", runs_dir=tmp_path)
    weights = ship(monkeypatch, tmp_path)
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(OSError, match="its header describes"):
        warpzone.load_agent("small", runs_dir=tmp_path)


def test_threads_are_left_as_they_were(tmp_path: Path) -> None:
    agent = load(tmp_path)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        agent.act(np.zeros((1, 4, 36, 36), np.uint8))
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_without_pytorch_it_says_what_to_install() -> None:
    code = (
        "import sys, importlib.util as util, warpzone\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name == 'torch' else found(name, *rest)\n"
        "try:\n    warpzone.load_agent\n"
        "except ImportError as error:\n    print(error)\n"
        "print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    sentence = "agents need PyTorch; install it with: pip install 'warpzone[train]'"
    assert said.stdout == f"{sentence}\nFalse\n"


def documented(page: str) -> str:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    (code,) = [block for block in blocks if 'load_agent("all")' in block]
    return str(code)


def test_the_documented_lines_play(capsys: pytest.CaptureFixture[str]) -> None:
    code = documented("docs/agents.md")
    assert documented("README.md") == documented("README.zh-CN.md") == code
    names: dict[str, Any] = {}
    exec(compile(code, "docs/agents.md", "exec"), names)
    names["env"].close()
    assert names["infos"]["x_pos"].min() > 300
    assert capsys.readouterr().out == f"{names['infos']['x_pos']}\n"
