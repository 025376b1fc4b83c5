"""The agent as a whole: shapes, initial weights, graphs, and the spec's refusals."""

import math
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from warpzone.model.agent import Agent
from warpzone.model.heads import sample_action
from warpzone.model.spec import ENCODERS, MEMORIES, ModelSpec

SMALL: dict[str, Any] = {
    "actions": 5,
    "stack": 2,
    "height": 36,
    "width": 36,
    "features": 16,
    "width_multiplier": 0.25,
    "memory_size": 8,
    "memory_heads": 2,
    "memory_length": 3,
}


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("size", [(84, 84), (42, 42), (60, 96)])
def test_encoders_take_any_frame(encoder: str, size: tuple[int, int]) -> None:
    spec = ModelSpec(**SMALL | {"encoder": encoder, "height": size[0], "width": size[1]})
    agent = Agent(spec)
    obs = torch.randint(0, 256, (3, 2, *size), dtype=torch.uint8)
    output = agent.act(obs, torch.zeros(3, dtype=torch.int64), (), torch.ones(3).bool())
    assert output.logits.shape == (3, 5)
    assert output.value.shape == (3,)
    assert output.logits.dtype == output.value.dtype == torch.float32
    twice = agent.act(obs[:1], torch.zeros(1, dtype=torch.int64), (), torch.ones(1).bool())
    # No lane's answer depends on the others, as it would with batch norm.
    torch.testing.assert_close(twice.logits[0], output.logits[0])


def test_channels_blocks_and_width_are_the_specs() -> None:
    def parameters(**more: Any) -> int:
        return sum(p.numel() for p in Agent(ModelSpec(actions=7, **more)).parameters())

    # The sizes of the papers' networks with 4 frames of 84x84, 512 features, 7 actions.
    assert parameters() == 1_688_232
    assert parameters(encoder="impala", features=256) == 97_744 + 256 * (11 * 11 * 32 + 1) + 8 * 257
    assert parameters(channels=(8, 8, 8), features=32) < 60_000
    assert parameters(width_multiplier=0.5) < 0.3 * parameters()
    with_blocks = parameters(encoder="impala", blocks=3) - parameters(encoder="impala", blocks=2)
    assert with_blocks == sum(2 * (9 * c * c + c) for c in (16, 32, 32))


def test_the_initial_policy_is_almost_uniform() -> None:
    torch.manual_seed(0)
    agent = Agent(ModelSpec(actions=7, width_multiplier=0.5))
    obs = torch.randint(0, 256, (16, 4, 84, 84), dtype=torch.uint8)
    with torch.no_grad():
        output = agent.act(obs, torch.zeros(16, dtype=torch.int64), (), torch.ones(16).bool())
    distribution: Any = torch.distributions.Categorical(logits=output.logits)
    entropy = distribution.entropy()
    assert entropy.min() > math.log(7) - 1e-3
    assert output.value.std() > 0.01
    encoder: Any = agent.encoder
    first = encoder.convolutions[0].weight.detach().flatten(1)
    torch.testing.assert_close(first @ first.T, 2.0 * torch.eye(16), rtol=1e-4, atol=1e-4)


def test_the_previous_action_changes_how_a_picture_is_judged() -> None:
    torch.manual_seed(0)
    agent = Agent(ModelSpec(**SMALL, previous_action=True))
    agent.heads.policy.weight.data.mul_(100.0)
    obs = torch.randint(0, 256, (2, 2, 36, 36), dtype=torch.uint8)
    no, yes = torch.zeros(2).bool(), torch.ones(2).bool()

    def logits(action: int, starts: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return agent.act(obs, torch.full((2,), action), (), starts).logits

    difference = logits(1, no) - logits(2, no)
    assert not torch.allclose(difference[0], difference[1])  # not a mere shift
    assert torch.equal(logits(1, yes), logits(2, yes))  # nothing came before a start
    assert not torch.equal(logits(1, yes), logits(1, no))


@pytest.mark.parametrize("memory", MEMORIES)
def test_one_graph_without_a_look_at_the_numbers(memory: str) -> None:
    """Captured whole: a host sync or a shape that depends on numbers would break the graph."""
    torch.manual_seed(0)
    spec = ModelSpec(**SMALL, memory=memory, memory_layers=1, previous_action=True, noisy=True)
    agent = Agent(spec)
    obs = torch.randint(0, 256, (2, 2, 2, 36, 36), dtype=torch.uint8)
    previous, starts = torch.zeros(2, 2, dtype=torch.int64), torch.tensor([[True, False]] * 2)
    state = agent.initial_state(2)
    learn = torch.compile(agent, backend="eager", fullgraph=True, dynamic=False)
    output = learn(obs, previous, state, starts)
    plain = agent(obs, previous, state, starts)
    torch.testing.assert_close(output.logits, plain.logits)
    (output.logits.square().sum() + output.value.sum()).backward()
    assert all(p.grad is not None for p in agent.parameters())
    torch._dynamo.reset()


@pytest.mark.parametrize("memory", MEMORIES)
def test_acting_does_not_look_at_the_numbers(memory: str) -> None:
    """Tensors here have shapes and no numbers, so asking for one would raise."""
    with FakeTensorMode():
        agent = Agent(ModelSpec(**SMALL, memory=memory, previous_action=True))
        obs = torch.zeros((2, 2, 36, 36), dtype=torch.uint8)
        previous = torch.zeros(2, dtype=torch.int64)
        output = agent.act(obs, previous, agent.initial_state(2), previous.bool())
        actions, log_prob = sample_action(output.logits, torch.rand_like(output.logits))
    assert actions.shape == log_prob.shape == output.value.shape == (2,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"encoder": "vit"}, "the encoder must be one of nature, impala, tiles, ram, not 'vit'"),
        ({"memory": "rnn"}, "the memory must be one of none, gru, lstm, gtrxl, not 'rnn'"),
        ({"actions": 0}, "actions must be at least 1, and is 0"),
        ({"height": 26}, "frames of 26x36 are too small for the nature encoder"),
        ({"channels": (8, 8)}, "3 convolutions and needs as many channels, not 2"),
        (
            {"encoder": "ram", "channels": (8, 8)},
            "1 hidden layer and needs as many channels, not 2",
        ),
        ({"channels": (8, 0, 8)}, "channels must all be at least 1"),
        ({"width_multiplier": 0.0}, "width_multiplier must be above 0"),
        ({"noisy_sigma": math.nan}, "noisy_sigma must be above 0"),
        ({"memory": "gtrxl", "memory_heads": 3}, "8 is not a multiple of memory_heads 3"),
        ({"memory_length": 0}, "memory_length must be at least 1"),
    ],
)
def test_nonsense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ModelSpec(**SMALL | change)
