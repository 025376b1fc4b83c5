"""Replay in training: what is stored, when it is learned from, and that it is the same lesson."""

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_runs import CPU, learn, make_agent, make_collector, same, tiny

from warpzone.config import ConfigError, TrainConfig
from warpzone.data.replay.replay import SegmentBatch
from warpzone.data.types import Rollout
from warpzone.learn.batches import LaneBatches
from warpzone.learn.learner import Learner
from warpzone.learn.replaying import Replaying, replay_spec, without_burn_in
from warpzone.model.agent import Agent


def overrides(**changes: Any) -> dict[str, Any]:
    return {"algo": "vtrace", "per": True, "per_memory_gb": 0.01, "per_segments": 6, **changes}


def replaying(**changes: Any) -> TrainConfig:
    return tiny(**overrides(**changes))


def rollouts_of(config: TrainConfig, agent: Agent, count: int = 1) -> list[Rollout]:
    collector = make_collector(config, agent)
    try:
        return [collector.collect().to("cpu") for _ in range(count)]
    finally:
        collector.close()


def test_every_update_stores_and_every_third_replays(tmp_path: Path) -> None:
    run, shown = learn(tmp_path, max_steps=7 * 32, **overrides(per_sample_interval=3))
    assert run.learner.replaying is not None
    stored = [row["replay_push_total"] for row in shown.rows]
    assert stored == [4.0 * (index + 1) for index in range(7)]
    assert [row["replay_sample_total"] for row in shown.rows] == [0, 0, 1, 1, 1, 2, 2]
    learned = [row["replay_loss_value"] > 0 for row in shown.rows]
    assert learned == [False, False, True, False, False, True, False]
    last = shown.rows[-1]
    assert last["replay_fill_rate"] == 28 / run.learner.replaying.replay.storage.capacity
    assert 0 < last["replay_last_unique_ratio"] <= 1
    assert 0 < last["replay_avg_unique_ratio"] <= 1
    assert last["replay_priority_p50"] <= last["replay_priority_p90"] <= last["replay_priority_p99"]
    parts = ("search", "gather", "copy")
    total = sum(last[f"replay_sample_{part}_ms"] for part in parts)
    assert last["replay_sample_time_ms"] == pytest.approx(total)
    lines = [text for text in shown.said if text.startswith("[replay][stat] fill=")]
    assert lines
    assert "unique=" in lines[0]
    assert "avg_unique=" in lines[0]


def test_the_interval_follows_the_errors(tmp_path: Path) -> None:
    """Samples are as far apart as the interval of the update before says."""
    changes = overrides(per_interval_max=4, per_segments=2)
    _, shown = learn(tmp_path, max_steps=20 * 32, **changes)
    intervals = [int(row["replay_interval"]) for row in shown.rows]
    assert set(intervals) <= {1, 2, 4}
    assert len(set(intervals)) > 1
    totals = [0, *(int(row["replay_sample_total"]) for row in shown.rows)]
    sampled = [update for update in range(1, 21) if totals[update] > totals[update - 1]]
    for last, following in itertools.pairwise(sampled):
        assert following - last == intervals[last - 1]


def test_an_interval_below_the_least_is_refused() -> None:
    with pytest.raises(ConfigError, match="--per-interval-max 2 is below --per-sample-interval 3"):
        replaying(per_sample_interval=3, per_interval_max=2)


@pytest.mark.parametrize("updates", [1, 2])
def test_replay_changes_what_is_learned_once_there_is_enough(tmp_path: Path, updates: int) -> None:
    """Six segments are wanted, and an update stores four. What it then changes, and by how much, is
    compared in tests/property/test_learner.py."""
    with_replay, _ = learn(tmp_path / "a", max_steps=32 * updates, **overrides())
    without, _ = learn(tmp_path / "b", max_steps=32 * updates, algo="vtrace")
    assert same(with_replay.agent, without.agent) == (updates == 1)


def learned_from(learner: Learner, batches: LaneBatches) -> torch.Tensor:
    """Leaves the gradient of all lanes with the agent; the value errors."""
    batch = batches.batch(torch.arange(batches.total))
    losses = learner.algorithm.loss(batch, torch.zeros(()))
    losses.total.backward()  # type: ignore[no-untyped-call]
    return losses.errors


@pytest.mark.parametrize("memory", ["none", "gru", "gtrxl"])
def test_a_replayed_segment_teaches_what_the_rollout_taught(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIO_PER_FP16_SCALARS", "0")
    config = replaying(memory=memory, minibatch=32, per_segments=4)
    agent = make_agent(config)
    (rollout,) = rollouts_of(config, agent)
    learner = Learner(config, agent, CPU)
    assert learner.replaying is not None
    learner.replaying.replay.push(rollout)
    stored = learner.replaying.replay.storage.gather(torch.arange(4))
    errors = learned_from(learner, LaneBatches(learner.network, rollout, None))
    fresh = [parameter.grad.clone() for parameter in agent.parameters()]  # type: ignore[union-attr]
    agent.zero_grad()
    replayed = LaneBatches(learner.network, stored, None, weights=torch.ones(4))
    again = learned_from(learner, replayed)
    torch.testing.assert_close(again, errors, rtol=0, atol=1e-5)
    for parameter, gradient in zip(agent.parameters(), fresh, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("burn_in", [0, 3])
@pytest.mark.parametrize("normalize", [False, True], ids=["plain", "normalised"])
def test_a_smaller_last_piece_counts_for_less(normalize: bool, burn_in: int) -> None:
    whole = replaying(
        num_envs=6, minibatch=48, lr=1e-3, normalize_advantages=normalize, per_burn_in=burn_in
    )
    (rollout,) = rollouts_of(whole, make_agent(whole))
    # Forced steps do not count for the policy, and there are more of them in each lane.
    forced = torch.arange(rollout.length)[:, None] < torch.arange(rollout.lanes)
    rollout = rollout._replace(forced=forced)
    gradients = []
    for config in (whole, whole.replace(minibatch=16, grad_accum=3)):
        agent = make_agent(config)
        learner = Learner(config, agent, CPU)
        kept = learner.replaying
        assert kept is not None
        # Five of six segments: pieces of two, two and one.
        kept.exchange = partial(_chosen, kept)  # type: ignore[method-assign]
        learner.updater.step = lambda veto=None: torch.zeros(())  # type: ignore[method-assign]
        learner._replay(kept, rollout, 0.0)
        gradients.append([part.grad for part in agent.parameters()])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def _chosen(kept: Replaying, rollout: Rollout, progress: float) -> SegmentBatch:
    kept.replay.push(rollout)
    slots = torch.arange(5)
    storage = kept.replay.storage
    weights = torch.linspace(0.2, 1.0, 5)
    return SegmentBatch(storage.gather(slots), weights, slots, storage.serials(slots))


@pytest.mark.parametrize("memory", ["none", "gru", "lstm", "gtrxl"])
def test_burn_in_leaves_the_rest_as_it_was(memory: str) -> None:
    # With the network that played, the memory after the burn-in is what it was then, so the rest
    # of the segment gives the logits it gave.
    config = replaying(memory=memory, per_burn_in=3, previous_action=True)
    agent = make_agent(config)
    rollout = rollouts_of(config, agent, 2)[1]
    rest = without_burn_in(agent, rollout, config, CPU)
    assert rest.length == config.rollout_steps - 3
    learner = Learner(config.replace(per=False), agent, CPU)
    with torch.no_grad():
        logits, values = learner.network.sequence(rest)
    torch.testing.assert_close(logits[:-1], rollout.logits[3:], rtol=0, atol=1e-5)
    torch.testing.assert_close(values[:-1], rollout.values[3:], rtol=0, atol=1e-5)
    assert torch.equal(rest.rewards, rollout.rewards[3:])
    assert all(not part.requires_grad for part in rest.state)


def test_burn_in_repairs_a_stale_memory() -> None:
    config = replaying(memory="gru", per_burn_in=6, stagnation_limit=0)
    agent = make_agent(config)
    rollout = rollouts_of(config, agent, 2)[1]
    stale = rollout._replace(state=tuple(torch.randn_like(part) for part in rollout.state))
    learner = Learner(config.replace(per=False), agent, CPU)
    with torch.no_grad():
        at_once = learner.network.sequence(stale)[1][0]
        burnt_in = learner.network.sequence(without_burn_in(agent, stale, config, CPU))[1][0]
    wrong_at_once = (at_once - rollout.values[0]).abs().mean()
    wrong_after = (burnt_in - rollout.values[6]).abs().mean()
    assert wrong_after < 0.5 * wrong_at_once


def test_priorities_follow_the_errors() -> None:
    config = replaying(per_segments=4, per_alpha=1.0)
    agent = make_agent(config)
    kept = Replaying(config, agent, CPU)
    (rollout,) = rollouts_of(config, agent)
    batch = kept.exchange(rollout, 0.0)
    assert isinstance(batch, SegmentBatch)
    slots = torch.arange(4)
    whole = batch._replace(slots=slots, serials=kept.replay.storage.serials(slots))
    kept.learned(whole, torch.tensor([[1.0, 2.0, 3.0, 4.0]]).expand(8, 4))
    weights = kept.replay.sampler.get(slots)
    torch.testing.assert_close(weights.float(), torch.tensor([1.0, 2.0, 3.0, 4.0]) + 1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_importance_weights_count(tmp_path: Path, alpha: float) -> None:
    """Where all segments are drawn alike, no draw needs a correction, whatever beta is."""
    shared = overrides(per_alpha=alpha, max_steps=4 * 32)
    corrected, _ = learn(tmp_path / "a", **shared, per_beta=1.0, per_beta_final=1.0)
    plain, _ = learn(tmp_path / "b", **shared, per_beta=0.0, per_beta_final=0.0)
    assert same(corrected.agent, plain.agent) == (alpha == 0.0)


def test_the_device_sampler_and_its_fall_back(tmp_path: Path) -> None:
    _, kept = learn(tmp_path / "a", max_steps=5 * 32, **overrides(per_gpu_sample=True))
    assert [row["replay_gpu_sample"] for row in kept.rows] == [1.0] * 5
    slow = overrides(per_gpu_sample=True, per_gpu_sample_fallback_ms=1e-9)
    _, given_up = learn(tmp_path / "b", max_steps=6 * 32, **slow)
    on_device = [row["replay_gpu_sample"] for row in given_up.rows]
    assert on_device[0] == 1.0
    assert on_device[-1] == 0.0


def test_memory_bounds_the_replay() -> None:
    agent = make_agent(tiny())
    spec = replay_spec(replaying(per_memory_gb=0.001), agent)
    assert spec.capacity * spec.segment.bytes <= 0.001 * 2**30
    assert (spec.capacity + 1) * spec.segment.bytes > 0.001 * 2**30
    with pytest.raises(ConfigError, match="cannot hold one segment"):
        replay_spec(replaying(per_memory_gb=1e-6), agent)
    with pytest.raises(ConfigError, match="more than the"):
        Replaying(replaying(per_memory_gb=1e6), agent, CPU)
