"""Lanes are alike: wherever a lane stands, it has the same games."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_runs import make_agent, make_collector, tiny

from warpzone.collect import collector as collectors
from warpzone.collect import lanes as lanes_module
from warpzone.collect.lanes import lane_seeds
from warpzone.collect.streams import STREAMS, stream_seed
from warpzone.data.types import Rollout

LANES = 5


def rollouts(memory: str, order: list[int]) -> list[Rollout]:
    """Two rollouts of a run whose lanes were put into another order, random numbers and all."""
    config = tiny(num_envs=LANES, groups=1, minibatch=40, memory=memory, previous_action=True)
    agent = make_agent(config)
    seeds = lane_seeds(config.seed, slice(0, LANES))
    draw = collectors.Collector._draw

    def permuted(self: collectors.Collector) -> torch.Tensor:
        uniform = draw(self)
        assert uniform is not None
        return uniform[:, order]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes_module, "lane_seeds", lambda seed, lanes: [seeds[i] for i in order])
        patch.setattr(collectors.Collector, "_draw", permuted)
        collector = make_collector(config, agent)
        try:
            found = []
            for _ in range(2):
                rollout = collector.collect()
                found.append(rollout.select(torch.arange(LANES)))
            return found
        finally:
            collector.close()


@pytest.mark.parametrize("memory", ["none", "gru", "gtrxl"])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(order=st.permutations(range(LANES)))
def test_permuting_lanes_permutes_rollouts(memory: str, order: list[int]) -> None:
    plain = rollouts(memory, list(range(LANES)))
    permuted = rollouts(memory, order)
    for before, after in zip(plain, permuted, strict=True):
        expected = before.select(torch.tensor(order))
        for name, value in zip(expected._fields, expected, strict=True):
            if isinstance(value, torch.Tensor) and not value.is_floating_point():
                assert torch.equal(getattr(after, name), value), name
            elif isinstance(value, torch.Tensor):
                torch.testing.assert_close(getattr(after, name), value, rtol=1e-5, atol=1e-5)
        for part, value in zip(after.state, expected.state, strict=True):
            torch.testing.assert_close(part, value, rtol=1e-5, atol=1e-5)


@given(st.integers(0, 2**63), st.integers(0, 2**63))
def test_streams_have_seeds_of_their_own(one: int, other: int) -> None:
    seeds = [stream_seed(one, stream) for stream in STREAMS]
    assert len(set(seeds)) == len(STREAMS)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert (one == other) == (seeds[0] == stream_seed(other, STREAMS[0]))
