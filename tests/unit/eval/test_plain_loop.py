"""Evaluation against a plain Gymnasium loop over `MarioEnv`, with every option written out."""

from collections import Counter
from typing import Any

import pytest
import torch
from tiny_runs import make_agent, tiny

from warpzone import MarioEnv, rom
from warpzone.config import TrainConfig
from warpzone.eval.cases import Outcome
from warpzone.eval.evaluate import evaluate
from warpzone.model.agent import Agent
from warpzone.rom import native

#: What training wants to be different, and evaluation must not hear of.
TRAINING: dict[str, Any] = {
    "sticky": 0.5,
    "start_delay": 9,
    "episode_timeout_steps": 10,
    "stagnation_limit": 3,
    "scripted_sequence": "LEFT:40",
    "stages": "1-1,1-2",
    "random_stage": True,
}


def plain(agent: Agent, stage: str, delay: int, patience: int) -> dict[str, Any]:
    """One life with the likeliest action, until it ends or goes nowhere for `patience` steps."""
    weights = {"pixel": 0.1, "step": -0.04, "flag": 5.0, "death": -2.5, "clip": 15.0}
    env = MarioEnv(
        stages=stage, actions="simple", frame_skip=4, frame_stack=4, size=36, start_delay=delay,
        mask_status_bar=True, reward="progress", reward_weights=weights, end="life",
    )  # fmt: skip
    obs, info = env.reset(seed=0)
    steps, still, total, furthest, ended = 0, 0, 0.0, info["furthest_x"], False
    while not ended and still < patience:
        with torch.no_grad():
            logits = agent.act(torch.from_numpy(obs)[None], torch.zeros(1).long(), (), FIRST).logits
        obs, reward, ended, _, info = env.step(int(logits.argmax()))
        steps, total = steps + 1, total + reward
        still = 0 if info["furthest_x"] > furthest else still + 1
        furthest = info["furthest_x"]
    env.close()
    reason = ("flag" if info["flag_get"] else "death") if ended else "stuck"
    place = {"furthest_x": furthest, "x": info["x_pos"], "time_left": info["time"]}
    return {"steps": steps, "episode_return": total, "reason": reason, **place}


FIRST = torch.ones(1, dtype=torch.bool)


def evaluated(agent: Agent, config: TrainConfig, **changes: Any) -> list[Outcome]:
    image = rom.find()
    return evaluate(agent, config, image, native.load(image), **changes)


def same(outcome: Outcome, expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        assert getattr(outcome, name) == pytest.approx(value, abs=1e-3), (outcome, name)


@pytest.mark.parametrize("seed", [3, 4])
def test_as_a_plain_loop(seed: int) -> None:
    config = tiny(**TRAINING)
    agent = make_agent(config, seed=seed)
    delays = (0, 1, 13, 30)
    found = evaluated(agent, config, delays=delays, policies=("argmax",), stuck_after=25)
    assert [(one.stage, one.start_delay) for one in found] == [
        (stage, delay) for delay in delays for stage in ("1-1", "1-2")
    ]
    for outcome in found:
        same(outcome, plain(agent, outcome.stage, outcome.start_delay, 25))
        assert outcome.cleared == (outcome.reason == "flag")


def test_every_delay_once_with_both_policies() -> None:
    config = tiny(**TRAINING)
    found = evaluated(make_agent(config, seed=3), config, stuck_after=1)
    expected = [
        (stage, policy, delay)
        for stage in ("1-1", "1-2")
        for policy in ("argmax", "sampled")
        for delay in range(31)
    ]
    played = Counter((one.stage, one.policy, one.start_delay) for one in found)
    assert played == Counter(expected)


def test_who_stands_still_is_given_400_steps() -> None:
    config = tiny(**TRAINING)
    agent = make_agent(config)
    with torch.no_grad():
        agent.heads.policy.weight.zero_()
        agent.heads.policy.bias.copy_(torch.tensor([9.0] + [0.0] * 6))
    (found,) = evaluated(agent, config, stages="1-1", delays=(0,), policies=("argmax",))
    same(found, plain(agent, "1-1", 0, 400))
    assert (found.reason, found.steps) == ("stuck", 400)
