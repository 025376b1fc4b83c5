"""Returns and a whole update against CleanRL's `ppo_atari.py`.

CleanRL is a collection of scripts, pinned to old versions of Python and Gymnasium, and cannot be
installed beside this package; its formulas are written out here, in its own names. Its returns know
one kind of end, after which nothing follows, so that every recorded end is one. It divides
advantages by the deviation of a sample (n - 1): all of its advantages are smaller by one factor."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import peers
import pytest
import torch
from torch import Tensor, nn

from warpzone.algo.returns import gae, steps_of
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.model.agent import Agent

WEIGHTS = 2e-5


@pytest.fixture(scope="module")
def recorded() -> tuple[Agent, Rollout]:
    agent, rollout = peers.recorded(peers.settings())
    ended = rollout.terminated | rollout.truncated
    return agent, rollout._replace(terminated=ended, truncated=torch.zeros_like(ended))


def cleanrl_returns(rollout: Rollout, gamma: float, gae_lambda: float) -> tuple[Tensor, Tensor]:
    """`dones[t]` says that step t is the first of an episode."""
    rewards, values = rollout.rewards, rollout.values
    num_steps = len(rewards)
    dones = torch.cat([torch.zeros(1, rollout.lanes), rollout.terminated.float()])
    next_value, next_done = rollout.last_value, dones[num_steps]
    advantages = torch.zeros_like(rewards)
    lastgaelam = torch.zeros(rollout.lanes)
    for t in reversed(range(num_steps)):
        if t == num_steps - 1:
            nextnonterminal, nextvalues = 1.0 - next_done, next_value
        else:
            nextnonterminal, nextvalues = 1.0 - dones[t + 1], values[t + 1]
        delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
        lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
        advantages[t] = lastgaelam
    return advantages, advantages + values


def cleanrl_update(config: TrainConfig, agent: Agent, rollout: Rollout) -> dict[str, float]:
    """All passes, each with one minibatch; returns the means of what it writes down."""
    optimizer = torch.optim.Adam(agent.parameters(), lr=config.lr, eps=1e-5)
    b_advantages, b_returns = (
        part.flatten() for part in cleanrl_returns(rollout, config.gamma, config.gae_lambda)
    )
    b_obs = torch.from_numpy(peers.observations(rollout)).flatten(0, 1)
    b_actions, b_logprobs = rollout.actions.flatten(), rollout.log_prob.flatten()
    told: list[tuple[float, ...]] = []
    for _ in range(config.epochs):
        logits, newvalue = peers.answers(agent, b_obs)
        probs: Any = torch.distributions.Categorical(logits=logits)
        logratio = probs.log_prob(b_actions) - b_logprobs
        ratio = logratio.exp()
        mb_advantages = b_advantages
        if config.normalize_advantages:
            # The factor of the sample's deviation, so that both are the same problem.
            count = len(b_advantages)
            mb_advantages = (b_advantages - b_advantages.mean()) / (b_advantages.std() + 1e-8)
            mb_advantages = mb_advantages * (count / (count - 1)) ** 0.5
        pg_loss1 = -mb_advantages * ratio
        pg_loss2 = -mb_advantages * torch.clamp(ratio, 1 - config.clip, 1 + config.clip)
        pg_loss = torch.max(pg_loss1, pg_loss2).mean()
        v_loss = 0.5 * ((newvalue - b_returns) ** 2).mean()
        entropy_loss = probs.entropy().mean()
        loss = pg_loss - config.entropy * entropy_loss + v_loss * config.value_coef
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), config.clip_grad)
        optimizer.step()
        with torch.no_grad():
            approx_kl = ((ratio - 1) - logratio).mean()
            clipfrac = ((ratio - 1.0).abs() > config.clip).float().mean()
        parts = (pg_loss, v_loss, entropy_loss, approx_kl, clipfrac)
        told.append(tuple(part.item() for part in parts))
    names = ("loss_policy", "loss_value", "entropy", "approx_kl", "clip_fraction")
    return dict(zip(names, np.mean(told, 0).tolist(), strict=True))


def test_returns(recorded: tuple[Agent, Rollout]) -> None:
    config, (_, rollout) = peers.settings(), recorded
    ours = gae(steps_of(rollout), gamma=config.gamma, lam=config.gae_lambda)
    advantages, returns = cleanrl_returns(rollout, config.gamma, config.gae_lambda)
    torch.testing.assert_close(ours.advantages, advantages, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(ours.targets, returns, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("normalize", [False, True])
def test_an_update(recorded: tuple[Agent, Rollout], normalize: bool) -> None:
    config = peers.settings(normalize_advantages=normalize)
    agent, rollout = recorded
    ours, row = peers.learned(config, agent, rollout)
    theirs = copy.deepcopy(agent)
    told = cleanrl_update(config, theirs, rollout)
    for name, value in told.items():
        tolerance = 0.02 if name == "clip_fraction" else 2e-5
        assert row[name] == pytest.approx(value, rel=1e-4, abs=tolerance), name
    assert row["clip_fraction"] > 0.05
    assert peers.distance(agent, theirs) > 100 * WEIGHTS
    assert peers.distance(ours, theirs) < WEIGHTS
