"""Decisions of an exploration: exact ones are an evaluation's, rough ones are near."""

import numpy as np
import pytest
import torch
from explorers import config_of
from tiny_runs import make_agent
from torch import nn

from warpzone.model.agent import Agent
from warpzone.teach.places import Place
from warpzone.teach.table import Decisions, Table

LANES = 70


def table(agent: Agent, rough: bool) -> Table:
    """Lanes that see noise, some at the start of an episode and some in the middle of one."""
    spec, random = agent.spec, np.random.default_rng(3)
    one = Table(agent, LANES, spec.height, spec.width, rough=rough)
    draw = torch.Generator().manual_seed(5)
    for lane in range(LANES):
        frames = random.integers(0, 256, (spec.stack, spec.height, spec.width)).astype(np.uint8)
        empty = agent.initial_state(1)
        memory = tuple(torch.randn(part.shape[1:], generator=draw) for part in empty)
        place = Place((0,), b"", tuple(frames), memory if lane % 3 else None, lane % 5)
        one.sit(lane, place)
    return one


def memories(one: Table) -> torch.Tensor:
    parts = [torch.cat([part.flatten() for part in one.memory_of(lane)]) for lane in range(LANES)]
    return torch.stack(parts)


@pytest.mark.parametrize("memory", ["gru", "lstm"])
def test_rough_decisions_are_near_and_others_are_exact(memory: str) -> None:
    agent = make_agent(config_of(memory)).eval()
    lanes = np.arange(LANES)[::-1].copy()
    rough = np.random.default_rng(0).random(LANES) < 0.6
    made: list[Decisions] = []
    kept: list[torch.Tensor] = []
    for asked in (None, np.zeros(LANES, np.bool_), rough, np.ones(LANES, np.bool_)):
        with table(agent, rough=asked is not None) as one:
            made.append(one.decide(lanes, asked))
            kept.append(memories(one))
    exact, also, mixed, quick = made
    marked = torch.from_numpy(rough)
    back = torch.from_numpy(lanes)
    for index, name in enumerate(Decisions._fields):
        torch.testing.assert_close(exact[index], also[index], rtol=1e-5, atol=1e-6)
        # Those that are decided exactly have company in their batch that changes nothing.
        torch.testing.assert_close(
            mixed[index][~marked], exact[index][~marked], rtol=1e-5, atol=1e-6
        )
        for others in (mixed[index][marked], quick[index][marked]):
            wanted = exact[index][marked].float()
            torch.testing.assert_close(others.float(), wanted, rtol=0.05, atol=0.05)
            assert not torch.equal(others.float(), wanted), name
    before, _, after, all_rough = (part[back] for part in kept)
    torch.testing.assert_close(after[~marked], before[~marked], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(all_rough, before, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("encoder", ["nature", "impala"])
def test_the_agent_stays_in_single_precision(encoder: str) -> None:
    agent = make_agent(config_of(encoder=encoder))
    # Encoders of one's own may have norms, which take no two types at once.
    agent.encoder = nn.Sequential(agent.encoder, nn.LayerNorm(agent.spec.scaled_features))
    with table(agent, rough=True) as one:
        one.decide(np.arange(LANES), np.ones(LANES, np.bool_))
    assert {parameter.dtype for parameter in agent.parameters()} == {torch.float32}
