"""What the comparisons with other libraries share: a recorded rollout, the agent as they see it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from reference_pictures import observation
from tiny_runs import CPU, collect, make_agent, make_collector, tiny
from torch import Tensor

from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.learn.learner import Learner
from warpzone.model.agent import Agent

#: One optimiser step in each pass over the whole rollout: its order does not matter then. Rates and
#: bonuses stay as they are, and the clip of the ratio is soon reached.
SETTINGS: dict[str, Any] = {
    "num_envs": 4, "rollout_steps": 24, "minibatch": 96, "epochs": 4, "gamma": 0.93,
    "gae_lambda": 0.8, "clip": 0.02, "value_coef": 0.6, "entropy": 0.03, "entropy_final": 0.03,
    "lr": 3e-3, "lr_final": 1.0, "warmup": 0.0, "weight_decay": 0.0, "clip_grad": 0.4, "ema": 0.0,
    "target_kl": 0.0, "normalize_advantages": False, "max_steps": 9600, "episode_timeout_steps": 7,
}  # fmt: skip


def settings(**changes: Any) -> TrainConfig:
    return tiny(**{**SETTINGS, **changes})


def recorded(config: TrainConfig) -> tuple[Agent, Rollout]:
    """An agent and what it did in the game. Episodes are cut soon; every second of these ends
    counts as a death, so that both kinds are there."""
    agent = make_agent(config, seed=3)
    collector = make_collector(config, agent)
    try:
        rollout = collect(collector, 2)[1]
    finally:
        collector.close()
    ended = rollout.terminated | rollout.truncated
    odd = (ended.flatten().cumsum(0) % 2 == 1).view_as(ended)
    rollout = rollout._replace(terminated=ended & odd, truncated=ended & ~odd)
    assert rollout.terminated.sum() > 3
    assert rollout.truncated.sum() > 3
    assert not rollout.forced.any()
    return agent, rollout


def observations(rollout: Rollout) -> NDArray[np.uint8]:
    """[T, B, stack, H, W], stacked one by one."""
    steps, lanes = range(rollout.length), range(rollout.lanes)
    return np.stack([np.stack([observation(rollout, t, b) for b in lanes]) for t in steps])


def answers(agent: Agent, obs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and values of single observations, [N, stack, H, W]."""
    count = len(obs)
    starts = torch.ones(count, dtype=torch.bool)
    output = agent.act(obs, torch.zeros(count, dtype=torch.int64), (), starts)
    return output.logits, output.value


def learned(config: TrainConfig, agent: Agent, rollout: Rollout) -> tuple[Agent, dict[str, float]]:
    """A copy of the agent after one update of ours, and what the update reports."""
    ours = copy.deepcopy(agent)
    row = Learner(config, ours, CPU).update(rollout, 0.25)
    return ours, row


def distance(first: Agent, second: Agent) -> float:
    """The largest difference of two weights."""
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return max(float((a - b).detach().abs().max()) for a, b in pairs)
