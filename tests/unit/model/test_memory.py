"""Acting step by step is learning from the whole sequence, and both are the papers' formulas."""

from typing import Any

import pytest
import reference_memory as slow
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from warpzone.data.types import State
from warpzone.model.agent import Agent
from warpzone.model.gtrxl import Gtrxl, along_context
from warpzone.model.memory import Gru, Lstm
from warpzone.model.spec import MEMORIES, ModelSpec

#: Sums of the same numbers in another order.
CLOSE: dict[str, Any] = {"rtol": 1e-4, "atol": 2e-5}
LANES, LENGTH = 3, 7


def agent_with(memory: str, **more: int | bool) -> Agent:
    torch.manual_seed(3)
    spec = ModelSpec(
        actions=5,
        stack=2,
        height=36,
        width=36,
        channels=(4, 4, 4),
        features=16,
        memory=memory,
        memory_size=8,
        memory_heads=2,
        **({"memory_length": 4, "previous_action": True} | more),  # type: ignore[arg-type]
    )
    agent = Agent(spec)
    # The initial policy is almost uniform, which would hide differences.
    agent.heads.policy.weight.data.mul_(100.0)
    return agent


def sequence(length: int, seed: int, starts: float = 0.25) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (length, LANES)
    obs = torch.randint(0, 256, (*shape, 2, 36, 36), generator=generator, dtype=torch.uint8)
    previous = torch.randint(0, 5, shape, generator=generator)
    return obs, previous, torch.rand(shape, generator=generator) < starts


@torch.no_grad()
def act_along(
    agent: Agent, obs: Tensor, previous: Tensor, state: State, starts: Tensor
) -> tuple[Tensor, Tensor, State]:
    logits, values = [], []
    for step in zip(obs, previous, starts, strict=True):
        output = agent.act(step[0], step[1], state, step[2])
        state = output.state
        logits.append(output.logits)
        values.append(output.value)
    return torch.stack(logits), torch.stack(values), state


def assert_close(ours: State, others: State) -> None:
    for one, other in zip(ours, others, strict=True):
        torch.testing.assert_close(one, other, **CLOSE)


@pytest.mark.parametrize("memory", MEMORIES)
def test_acting_is_learning(memory: str) -> None:
    """Over three rollouts with carried state and episode starts anywhere."""
    agent = agent_with(memory)
    acting = learning = agent.initial_state(LANES)
    for rollout in range(3):
        obs, previous, starts = sequence(LENGTH, seed=rollout)
        logits, values, acting = act_along(agent, obs, previous, acting, starts)
        output = agent(obs, previous, learning, starts)
        learning = output.state
        torch.testing.assert_close(output.logits.detach(), logits, **CLOSE)
        torch.testing.assert_close(output.value.detach(), values, **CLOSE)
        assert_close(learning, acting)
        assert logits.std() > 1e-3


@pytest.mark.parametrize("memory", MEMORIES)
def test_rollout_boundaries_do_not_matter(memory: str) -> None:
    agent = agent_with(memory)
    obs, previous, starts = sequence(12, seed=8)
    with torch.no_grad():
        whole = agent(obs, previous, agent.initial_state(LANES), starts)
        state, parts = agent.initial_state(LANES), []
        for start, end in ((0, 1), (1, 7), (7, 12)):
            output = agent(obs[start:end], previous[start:end], state, starts[start:end])
            state = output.state
            parts.append(output.logits)
    torch.testing.assert_close(torch.cat(parts), whole.logits, **CLOSE)
    assert_close(state, whole.state)


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_future_does_not_change_the_past(memory: str) -> None:
    agent = agent_with(memory)
    obs, previous, starts = sequence(LENGTH, seed=1, starts=0.0)
    changed = obs.clone()
    changed[4] = 255 - changed[4]
    with torch.no_grad():
        first = agent(obs, previous, agent.initial_state(LANES), starts).logits
        second = agent(changed, previous, agent.initial_state(LANES), starts).logits
    assert torch.equal(first[:4], second[:4])
    assert not torch.allclose(first[4], second[4])
    if memory != "none":
        assert not torch.equal(first[5], second[5])


@pytest.mark.parametrize("memory", MEMORIES)
def test_nothing_crosses_an_episode_start(memory: str) -> None:
    agent = agent_with(memory)
    obs, previous, starts = sequence(LENGTH, seed=2, starts=0.0)
    starts[3] = True
    other, other_previous, _ = sequence(LENGTH, seed=9)
    other[3:], other_previous[4:] = obs[3:], previous[4:]
    with torch.no_grad():
        first = agent(obs, previous, agent.initial_state(LANES), starts)
        noise = tuple(
            torch.full_like(part, 3) if part.dtype == torch.int64 else torch.randn_like(part)
            for part in agent.initial_state(LANES)
        )
        second = agent(other, other_previous, noise, starts)
    assert torch.equal(first.logits[3:], second.logits[3:])
    assert not torch.allclose(first.logits[:3], second.logits[:3])


@pytest.mark.parametrize("memory", MEMORIES)
def test_permuting_lanes_permutes_logits(memory: str) -> None:
    agent = agent_with(memory)
    obs, previous, starts = sequence(LENGTH, seed=4)
    order = torch.tensor([2, 0, 1])
    warm = agent(obs, previous, agent.initial_state(LANES), starts).state
    with torch.no_grad():
        plain = agent(obs, previous, warm, starts)
        moved = agent(
            obs[:, order], previous[:, order], tuple(p[order] for p in warm), starts[:, order]
        )
    torch.testing.assert_close(moved.logits, plain.logits[:, order], **CLOSE)
    assert_close(moved.state, tuple(part[order] for part in plain.state))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**31), layers=st.integers(1, 3), memory_length=st.integers(1, 6))
def test_gtrxl_is_the_papers(seed: int, layers: int, memory_length: int) -> None:
    torch.manual_seed(seed)
    module = Gtrxl(6, 8, layers=layers, heads=2, memory_length=memory_length)
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter)
    x, starts = torch.randn(9, 2, 6), torch.rand(9, 2) < 0.2
    with torch.no_grad():
        output, _ = module(x, module.initial_state(2, "cpu"), starts)
    for lane in range(2):
        reference = slow.SlowGtrxl(module)
        reference.reset()
        for t in range(9):
            if starts[t, lane]:
                reference.reset()
            expected = reference.step(x[t, lane])
            torch.testing.assert_close(output[t, lane].double(), expected, **CLOSE)


@pytest.mark.parametrize("kind", [Gru, Lstm])
def test_recurrent_cells_are_the_librarys(kind: type[Gru] | type[Lstm]) -> None:
    torch.manual_seed(0)
    module = kind(6, 8)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x, starts = torch.randn(9, 2, 6), torch.rand(9, 2) < 0.2
    with torch.no_grad():
        output, _ = module(x, module.initial_state(2, "cpu"), starts)
    for lane in range(2):
        h = c = torch.zeros(8, dtype=torch.float64)
        for t in range(9):
            if starts[t, lane]:
                h = c = torch.zeros(8, dtype=torch.float64)
            features = x[t, lane].double()
            if isinstance(module, Gru):
                h = slow.gru_step(module, features, h)
            else:
                h, c = slow.lstm_step(module, features, h, c)
            torch.testing.assert_close(output[t, lane].double(), h, **CLOSE)


def test_gtrxl_looks_back_memory_length_steps_in_each_layer() -> None:
    agent = agent_with("gtrxl", memory_length=2, memory_layers=2)
    obs, previous, starts = sequence(8, seed=5, starts=0.0)
    changed = obs.clone()
    changed[0] = 255 - changed[0]
    with torch.no_grad():
        first = agent(obs, previous, agent.initial_state(LANES), starts).logits
        second = agent(changed, previous, agent.initial_state(LANES), starts).logits
    same = [torch.equal(one, other) for one, other in zip(first, second, strict=True)]
    assert same == [False] * 5 + [True] * 3


def test_gtrxl_begins_close_to_the_identity() -> None:
    torch.manual_seed(0)
    module = Gtrxl(8, 8, layers=2, heads=2, memory_length=4)
    x = torch.randn(5, 2, 8)
    with torch.no_grad():
        output, _ = module(x, module.initial_state(2, "cpu"), torch.zeros(5, 2, dtype=torch.bool))
        stream = module.project(x)
    assert (output - stream).norm() < 0.6 * stream.norm()


def test_scores_by_distance_land_on_their_context() -> None:
    length, window = 5, 4
    by_distance = torch.randn(2, length, window)
    result = along_context(by_distance)
    expected = torch.zeros(2, length, window - 1 + length)
    for t in range(length):
        for e in range(window):
            expected[:, t, t + e] = by_distance[:, t, e]
    assert torch.equal(result, expected)


@pytest.mark.parametrize("memory", ["gru", "lstm", "gtrxl"])
def test_gradients_reach_back_within_the_episode_only(memory: str) -> None:
    agent = agent_with(memory)
    module = agent.memory
    x = torch.randn(6, LANES, 16, requires_grad=True)
    starts = torch.zeros(6, LANES, dtype=torch.bool)
    starts[3] = True
    output, _ = module(x, module.initial_state(LANES, "cpu"), starts)
    (gradient,) = torch.autograd.grad(output[4].sum(), x)
    reached = gradient.flatten(1).abs().sum(1) > 0
    assert reached.tolist() == [False, False, False, True, True, False]
