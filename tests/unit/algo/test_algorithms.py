"""The algorithms of the table: known by one list of names, and alike where they have to be."""

from typing import get_args, get_type_hints

import pytest
import torch
from tiny_runs import CPU, make_agent, make_collector, tiny

from warpzone.algo.algorithm import Batch, Losses, Whole
from warpzone.algo.returns import Returns
from warpzone.algo.table import ALGORITHMS
from warpzone.config import TrainConfig
from warpzone.config.algorithm import NEEDS, AlgorithmConfig
from warpzone.data.types import Rollout
from warpzone.learn.batches import LaneBatches, Network
from warpzone.model.agent import Agent


@pytest.fixture(scope="module")
def played() -> tuple[TrainConfig, Agent, Rollout]:
    config = tiny()
    agent = make_agent(config)
    collector = make_collector(config, agent)
    try:
        return config, agent, collector.collect()
    finally:
        collector.close()


def learned(name: str, played: tuple[TrainConfig, Agent, Rollout]) -> tuple[Losses, list[float]]:
    """Losses of a rollout by the network that played it, and the gradient."""
    config, agent, rollout = played
    algorithm = ALGORITHMS[name](config)
    batches = LaneBatches(Network(config, agent, CPU), rollout, algorithm.prepare(rollout))
    losses = algorithm.loss(batches.batch(torch.arange(rollout.lanes)), torch.tensor(0.01))
    agent.zero_grad()
    losses.total.backward()  # type: ignore[no-untyped-call]
    gradients = [part.grad.flatten() for part in agent.parameters() if part.grad is not None]
    return losses, torch.cat(gradients).tolist()


def test_one_list_of_names() -> None:
    names = get_args(get_type_hints(AlgorithmConfig)["algo"])
    assert set(names) == set(ALGORITHMS) == set(NEEDS)


@pytest.mark.parametrize("name", ["a2c", "vtrace", "appo"])
def test_with_the_policy_that_played_all_learn_the_same(
    name: str, played: tuple[TrainConfig, Agent, Rollout]
) -> None:
    """Nothing is clipped and nothing to correct: PPO, A2C, V-trace and APPO are one gradient."""
    expected, gradient = learned("ppo", played)
    losses, same = learned(name, played)
    assert same == pytest.approx(gradient, rel=1e-3, abs=1e-6)
    assert float(losses.value) == pytest.approx(float(expected.value), rel=1e-5)
    assert float(losses.entropy) == float(expected.entropy)
    assert float(losses.approx_kl) == pytest.approx(0.0, abs=1e-9)
    assert float(expected.clip_fraction) == 0.0
    torch.testing.assert_close(losses.errors, expected.errors, rtol=1e-4, atol=1e-5)


def gradient_of_an_old_rollout(
    name: str, played: tuple[TrainConfig, Agent, Rollout], *, anchored: bool
) -> tuple[Losses, list[float]]:
    """As `learned`, of a rollout whose policy was far from the one that learns."""
    config, agent, rollout = played
    config = config.replace(rho_clip=0.8, clip=0.1)
    random = torch.Generator().manual_seed(1)
    shift = torch.randn(rollout.log_prob.shape, generator=random)
    rollout = rollout._replace(log_prob=rollout.log_prob + shift)
    algorithm = ALGORITHMS[name](config)
    batches = LaneBatches(Network(config, agent, CPU), rollout, None)
    batch = batches.batch(torch.arange(rollout.lanes))
    if anchored:
        batch = batch._replace(proximal=batch.log_prob.detach())
    losses = algorithm.loss(batch, torch.tensor(0.01))
    agent.zero_grad()
    losses.total.backward()  # type: ignore[no-untyped-call]
    gradients = [part.grad.flatten() for part in agent.parameters() if part.grad is not None]
    return losses, torch.cat(gradients).tolist()


def test_the_first_step_from_an_old_rollout_is_that_of_vtrace(
    played: tuple[TrainConfig, Agent, Rollout],
) -> None:
    """Measured from the policy that learns nothing is clipped yet, and V-trace's weights are left.
    Measured from the one that played most is."""
    _, expected = gradient_of_an_old_rollout("vtrace", played, anchored=False)
    losses, gradient = gradient_of_an_old_rollout("appo", played, anchored=True)
    assert gradient == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert float(losses.clip_fraction) == 0.0
    assert float(losses.approx_kl) == 0.0
    losses, gradient = gradient_of_an_old_rollout("appo", played, anchored=False)
    assert float(losses.clip_fraction) > 0.5
    assert gradient != pytest.approx(expected, rel=1e-1, abs=1e-4)


def test_only_the_total_has_a_gradient(played: tuple[TrainConfig, Agent, Rollout]) -> None:
    for name in ALGORITHMS:
        losses, _ = learned(name, played)
        assert [part.requires_grad for part in losses] == [True] + [False] * (len(losses) - 1)


def steps(count: int, **changes: object) -> Batch:
    numbers = torch.linspace(-1.0, 1.0, count)
    batch = Batch(
        logits=torch.zeros(count, 2),
        log_prob=torch.full((count,), 0.5).log(),
        values=numbers,
        old_log_prob=torch.full((count,), 0.5).log(),
        free=torch.ones(count, dtype=torch.bool),
        shown=torch.arange(count) % 3 == 0,
        returns=Returns(targets=numbers + 1.0, advantages=numbers),
    )
    return batch._replace(**changes)  # type: ignore[arg-type]


def test_a_piece_is_a_part_of_its_optimiser_step() -> None:
    algorithm = ALGORITHMS["ppo"](AlgorithmConfig())
    bonus = torch.tensor(0.01)
    whole = algorithm.loss(steps(6), bonus)
    piece = Whole(steps=24, free=torch.tensor(24), moments=None)
    part = algorithm.loss(steps(6, whole=piece), bonus)
    for one, other in zip(part[:-1], whole[:-1], strict=True):
        assert float(one) == pytest.approx(float(other) / 4)


@pytest.mark.parametrize(
    ("name", "missing"), [("ppo", "prepares no returns"), ("vtrace", "needs whole lanes")]
)
def test_a_batch_that_lacks_what_is_needed_is_refused(name: str, missing: str) -> None:
    with pytest.raises(TypeError, match=missing):
        ALGORITHMS[name](AlgorithmConfig()).loss(steps(4, returns=None), torch.zeros(()))
