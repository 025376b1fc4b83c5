"""Returns and a whole update against Stable-Baselines3: its rollout buffer and its `PPO.train`.

Three things differ by definition, and are translated here: it adds the discounted value of a cut
episode's last observation to the reward, where we keep the two apart; its value loss has no half,
so that its coefficient is half of ours; and it divides advantages by the deviation of a sample
(n - 1), where we divide by that of the minibatch."""

from __future__ import annotations

import copy
import math
from typing import Any

import gymnasium
import numpy as np
import peers
import pytest
import torch
from torch import Tensor, nn

from warpzone.algo.losses import normalised
from warpzone.algo.returns import gae, steps_of
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.model.agent import Agent

pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed (extra: sb3)")
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.logger import Logger

#: float32 sums in another order, after four optimiser steps.
WEIGHTS = 2e-5


@pytest.fixture(scope="module")
def recorded() -> tuple[Agent, Rollout]:
    return peers.recorded(peers.settings())


class Pictures(gymnasium.Env[Any, Any]):
    """What SB3 has to know of the game: two spaces."""

    def __init__(self, shape: tuple[int, ...], actions: int) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(actions)

    def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
        return self.observation_space.sample(), {}


class TheirPolicy(nn.Module):
    """Our network with the questions that `PPO.train` asks of a policy."""

    def __init__(self, agent: Agent, lr: float) -> None:
        super().__init__()
        self.agent = agent
        self.optimizer = torch.optim.Adam(agent.parameters(), lr=lr, eps=1e-5)

    def set_training_mode(self, mode: bool) -> None:
        self.train(mode)

    def evaluate_actions(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits, values = peers.answers(self.agent, obs)
        chosen: Any = torch.distributions.Categorical(logits=logits)
        return values[:, None], chosen.log_prob(actions), chosen.entropy()


def buffer_of(config: TrainConfig, rollout: Rollout) -> RolloutBuffer:
    """The rollout as SB3 would have collected it, with its returns."""
    obs = peers.observations(rollout)
    env = Pictures(obs.shape[2:], rollout.logits.shape[-1])
    buffer = RolloutBuffer(
        rollout.length,
        env.observation_space,
        env.action_space,
        "cpu",
        gae_lambda=config.gae_lambda,
        gamma=config.gamma,
        n_envs=rollout.lanes,
    )
    ended = (rollout.terminated | rollout.truncated).numpy()
    before = np.zeros(rollout.lanes, bool)
    for t in range(rollout.length):
        cut = torch.where(rollout.truncated[t], rollout.final_value[t], 0.0)
        buffer.add(
            obs[t],
            rollout.actions[t].numpy(),
            (rollout.rewards[t] + config.gamma * cut).numpy(),
            before,
            rollout.values[t],
            rollout.log_prob[t],
        )
        before = ended[t]
    buffer.compute_returns_and_advantage(rollout.last_value, before)
    return buffer


def test_returns(recorded: tuple[Agent, Rollout]) -> None:
    config, (_, rollout) = peers.settings(), recorded
    buffer = buffer_of(config, rollout)
    ours = gae(steps_of(rollout), gamma=config.gamma, lam=config.gae_lambda)
    np.testing.assert_allclose(ours.advantages.numpy(), buffer.advantages, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.targets.numpy(), buffer.returns, rtol=1e-4, atol=1e-5)
    assert np.abs(buffer.advantages).max() > 0.1


def test_an_update(recorded: tuple[Agent, Rollout]) -> None:
    config, (agent, rollout) = peers.settings(), recorded
    ours, row = peers.learned(config, agent, rollout)

    buffer = buffer_of(config, rollout)
    env = Pictures(buffer.obs_shape, rollout.logits.shape[-1])
    model = PPO(
        "MlpPolicy",
        env,
        n_steps=rollout.length * rollout.lanes,
        batch_size=rollout.length * rollout.lanes,
        n_epochs=config.epochs,
        learning_rate=config.lr,
        clip_range=config.clip,
        ent_coef=config.entropy,
        vf_coef=config.value_coef / 2,
        max_grad_norm=config.clip_grad,
        normalize_advantage=False,
        device="cpu",
    )
    theirs = copy.deepcopy(agent)
    policy: Any = TheirPolicy(theirs, config.lr)
    model.policy, model.rollout_buffer = policy, buffer
    model.set_logger(Logger(None, []))
    model.train()

    told = model.logger.name_to_value
    assert row["loss_policy"] == pytest.approx(told["train/policy_gradient_loss"], abs=1e-5)
    assert row["loss_value"] == pytest.approx(told["train/value_loss"] / 2, rel=1e-4)
    assert row["entropy"] == pytest.approx(-told["train/entropy_loss"], rel=1e-5)
    assert row["clip_fraction"] == pytest.approx(told["train/clip_fraction"], abs=0.02)
    assert row["clip_fraction"] > 0.05
    assert peers.distance(agent, theirs) > 100 * WEIGHTS
    assert peers.distance(ours, theirs) < WEIGHTS


def test_normalised_advantages_differ_by_the_deviation_of_a_sample() -> None:
    advantages = torch.randn(40, generator=torch.Generator().manual_seed(0)) * 3 + 1
    theirs = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    torch.testing.assert_close(normalised(advantages), theirs * math.sqrt(40 / 39))
