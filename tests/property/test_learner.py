"""Whole updates of the learner against the slow one of `tests/oracle/reference_learner.py`."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from learners import compare
from reference_replay import ToyLanes
from tiny_runs import make_agent, tiny

from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.model.agent import Agent

LANES, STEPS, UPDATES = 4, 6, 2

#: No field has its default, so that one that is not read is noticed.
NUMBERS = {
    "gamma": st.sampled_from([0.6, 0.8, 0.97]),
    "gae_lambda": st.sampled_from([0.3, 0.7, 0.9]),
    "clip": st.sampled_from([0.05, 0.4]),
    "value_coef": st.sampled_from([0.1, 2.0]),
    "entropy": st.sampled_from([0.1, 0.4]),
    "entropy_final": st.sampled_from([0.05, 0.7]),
    "imitation": st.sampled_from([0.2, 1.5]),
    "rho_clip": st.sampled_from([0.4, 1.7]),
    "c_clip": st.sampled_from([0.5, 1.4]),
    "lr": st.sampled_from([3e-3, 1e-2]),
    "lr_final": st.sampled_from([0.0, 0.4]),
    "weight_decay": st.sampled_from([0.0, 1.0, 3.0]),
    # Smaller than every gradient, with Adam's epsilon in reach, and hardly ever reached.
    "clip_grad": st.sampled_from([1e-4, 0.3, 50.0]),
    "warmup": st.sampled_from([0.0, 0.3]),
    "normalize_advantages": st.booleans(),
    "ema": st.sampled_from([0.03, 0.6]),
    "noisy": st.booleans(),
    "previous_action": st.booleans(),
    "frame_stack": st.sampled_from([1, 3]),
    "seed": st.integers(0, 1000),
    # An update is a tenth of the run, or next to nothing of it.
    "max_steps": st.sampled_from([240, 10**6]),
}
PICTURES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"observation": "tiles"},
        {"observation": "tiles", "augment_shift": 2},
        {"size": 27, "augment_shift": 3, "augment_brightness": 0.4},
    ]
)
MEMORIES = st.sampled_from(["gru", "lstm", "gtrxl"])
#: How a rollout is divided: minibatches of whole lanes, whole optimiser steps.
PARTS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"minibatch": LANES * STEPS},
        {"minibatch": 2 * STEPS},
        {"minibatch": STEPS, "grad_accum": 2},
        {"minibatch": STEPS, "grad_accum": 4},
    ]
)
PPO = {"epochs": st.integers(1, 3), "target_kl": st.sampled_from([0.0, 0.05, 1.0])}
REPLAY = {
    "algo": st.just("vtrace"),
    "per": st.just(True),
    "per_memory_gb": st.just(0.01),
    "per_alpha": st.sampled_from([0.3, 1.0]),
    "per_beta": st.sampled_from([0.2, 0.6]),
    "per_beta_final": st.sampled_from([0.5, 1.0]),
    "per_sample_interval": st.sampled_from([1, 1, 2]),
    # Three, so that the last piece is a smaller one; five are there at the second update.
    "per_segments": st.sampled_from([3, 4, 5]),
    "per_burn_in": st.sampled_from([0, 2, 4]),
}
#: Ways through the learner: single steps or whole lanes, and what is learned from them.
PATHS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "ppo": PPO,
    "ppo with memory": {**PPO, "memory": MEMORIES},
    "a2c": {"algo": st.just("a2c")},
    "a2c with memory": {"algo": st.just("a2c"), "memory": MEMORIES},
    "vtrace": {"algo": st.just("vtrace")},
    "vtrace with memory": {"algo": st.just("vtrace"), "memory": MEMORIES},
    "appo": {**PPO, "algo": st.just("appo")},
    "appo with memory": {**PPO, "algo": st.just("appo"), "memory": MEMORIES},
    "appo behind": {**PPO, "algo": st.just("appo")},
    "appo with memory behind": {**PPO, "algo": st.just("appo"), "memory": MEMORIES},
    "appo with replay behind": {**REPLAY, "algo": st.just("appo"), "epochs": st.integers(1, 2)},
    "replay": REPLAY,
    "appo with replay": {**REPLAY, "algo": st.just("appo"), "epochs": st.integers(1, 2)},
    "replay with memory": {**REPLAY, "memory": MEMORIES},
}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small tensors: threads cost more than they bring."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rollouts_of(config: TrainConfig, agent: Agent, count: int) -> list[Rollout]:
    """Random ones, of another policy than the agent's, with ends of both kinds, forced steps, and
    memory that is not empty."""
    actions = agent.spec.actions
    toy = ToyLanes(LANES, config.frame_stack, actions, seed=config.seed, picture=config.picture)
    random = torch.Generator().manual_seed(config.seed)
    toy.rollout(3)
    made = []
    for _ in range(count):
        state = tuple(
            torch.randn(part.shape, generator=random)
            if part.is_floating_point()
            else torch.randint(0, config.memory_length + 1, part.shape, generator=random)
            for part in agent.initial_state(LANES)
        )
        rollout, _ = toy.rollout(STEPS, state)
        forced = torch.rand(rollout.forced.shape, generator=random) < 0.25
        log_prob = torch.where(forced, 0.0, rollout.log_prob)
        shown = forced & (torch.rand(forced.shape, generator=random) < 0.6)
        made.append(rollout._replace(forced=forced, shown=shown, log_prob=log_prob))
    return made


@pytest.mark.parametrize("path", PATHS)
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_an_update_is_that_of_the_papers(path: str, data: st.DataObject) -> None:
    values: dict[str, Any] = data.draw(st.fixed_dictionaries(NUMBERS))
    values |= data.draw(PICTURES) | data.draw(PARTS) | data.draw(st.fixed_dictionaries(PATHS[path]))
    config = tiny(num_envs=LANES, rollout_steps=STEPS, **values)
    progress = sorted(data.draw(st.tuples(*[st.floats(0.0, 1.0)] * UPDATES)))
    agent = make_agent(config)
    rollouts = rollouts_of(config, agent, UPDATES)
    compare(config, agent, rollouts, list(progress), behind=path.endswith("behind"))
