"""Replay against slow twins: what it holds, how often it draws, and that saving changes nothing."""

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import reference_replay as slow
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rollouts import check

from warpzone.data.replay.replay import Replay, ReplaySpec, SegmentBatch
from warpzone.data.replay.sampler import BetaSchedule, ScanSampler, TreeSampler
from warpzone.data.replay.shared import Part, SharedStorage, joined
from warpzone.data.replay.storage import SegmentSpec, SegmentStorage
from warpzone.data.replay.sum_tree import SumTree
from warpzone.data.stacking import stack_sequence

PROPERTY = settings(max_examples=25, deadline=None)
SEGMENT = SegmentSpec(length=3, stack=2, picture=(3, 2), actions=4, fp16_scalars=False)


def spec_for(capacity: int, **more: object) -> ReplaySpec:
    memory = capacity * SEGMENT.bytes
    return ReplaySpec(segment=SEGMENT, memory_bytes=memory, **more)  # type: ignore[arg-type]


@PROPERTY
@given(
    capacity=st.integers(1, 12),
    lanes=st.integers(1, 4),
    pieces=st.integers(1, 3),
    pushes=st.integers(1, 5),
    seed=st.integers(0, 2**32),
)
def test_replay_holds_the_latest_segments(
    capacity: int, lanes: int, pieces: int, pushes: int, seed: int
) -> None:
    replay = Replay(spec_for(capacity))
    reference = slow.SlowReplay(capacity, SEGMENT.length)
    toy = slow.ToyLanes(lanes, SEGMENT.stack, SEGMENT.actions, seed)
    for push in range(1, pushes + 1):
        rollout, _ = toy.rollout(pieces * SEGMENT.length)
        slots = replay.push(rollout)
        reference.push(rollout)
        assert replay.size == len(reference.segments)
        assert len(set(slots.tolist())) == len(slots)
        first = push * lanes * pieces - replay.size
        back = replay.storage.gather((torch.arange(replay.size) + first) % capacity)
        check(back)
        for index, segment in enumerate(reference.segments):
            lane = back.select(torch.tensor([index]))
            for ours, theirs in zip(lane[:-1], segment[:-1], strict=True):
                assert torch.equal(ours, theirs)
            stacks = stack_sequence(lane.frames, lane.age)
            assert torch.equal(stacks, stack_sequence(segment.frames, segment.age))


updates = st.lists(
    st.lists(st.tuples(st.integers(0, 10), st.floats(0.0, 1e6)), min_size=1, max_size=8),
    min_size=1,
    max_size=6,
)


@PROPERTY
@given(updates=updates, shares=st.lists(st.floats(0.0, 0.999), min_size=1, max_size=5))
def test_the_tree_keeps_its_sums(
    updates: list[list[tuple[int, float]]], shares: list[float]
) -> None:
    tree, weights = SumTree(11), [0.0] * 11
    for update in updates:
        tree.set(np.array([i for i, _ in update]), np.array([p for _, p in update]))
        for index in {i for i, _ in update}:
            weights[index] = max(p for i, p in update if i == index)
    assert tree.leaves.tolist() == weights
    assert tree.total == pytest.approx(math.fsum(weights), rel=1e-12)
    if tree.total > 0.0:
        found = tree.find(np.array(shares) * tree.total)
        for share, index in zip(shares, found, strict=True):
            assert weights[index] > 0.0
            before = math.fsum(weights[:index])
            slack = 1e-9 * tree.total
            assert before - slack <= share * tree.total <= before + weights[index] + slack


@pytest.mark.parametrize("kind", ["tree", "scan"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_draws_follow_the_priorities(kind: str, spread: float) -> None:
    """KL(drawn || priorities) of independent draws would be about (k - 1) / 2n = 0.0013 on average
    with k = 256 and n = 100,000; stratified draws stay below it. A slot shifted by one gives > 0.5
    at the wider spreads."""
    sampler = TreeSampler(300, 1) if kind == "tree" else ScanSampler(300, 1, "cpu")
    rng = np.random.default_rng(0)
    weights = np.exp(spread * rng.standard_normal(256)).astype(np.float32)
    sampler.set(torch.arange(256), torch.from_numpy(weights))
    counts = np.zeros(256, dtype=np.int64)
    for _ in range(100):
        slots, probability = sampler.sample(1000, 256)
        counts += np.bincount(slots.numpy(), minlength=256)
        expected = torch.from_numpy(weights / weights.sum())[slots]
        torch.testing.assert_close(probability.float(), expected, rtol=1e-4, atol=0.0)
    assert slow.kl_divergence(counts, weights.astype(np.float64)) < 0.0013
    if spread:
        assert slow.kl_divergence(np.roll(counts, 1), weights.astype(np.float64)) > 0.5


@PROPERTY
@given(seed=st.integers(0, 2**32), count=st.integers(1, 20))
def test_both_samplers_find_what_the_slow_search_finds(seed: int, count: int) -> None:
    weights = torch.rand(17, generator=torch.Generator().manual_seed(seed)) + 0.01
    tree, scan = TreeSampler(17, seed), ScanSampler(17, seed, "cpu")
    for sampler in (tree, scan):
        sampler.set(torch.arange(17), weights)
    drawn = torch.rand(
        count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).tolist()
    exact = weights.double().tolist()
    total = sum(exact)
    expected = [slow.find(exact, (i + u) / count * total) for i, u in enumerate(drawn)]
    assert tree.sample(count, 17)[0].tolist() == expected
    assert scan.sample(count, 17)[0].tolist() == expected


@pytest.mark.parametrize("interval", [1, 2, 4])
def test_every_update_pushes_and_every_nth_samples(interval: int) -> None:
    replay = Replay(spec_for(100, sample_interval=interval))
    toy = slow.ToyLanes(2, SEGMENT.stack, SEGMENT.actions, seed=0)
    sampled = []
    for update in range(1, 9):
        batch = replay.push_and_sample(toy.rollout(3)[0], 5, progress=0.0)
        sampled.append(batch is not None)
        assert replay.size == replay.stats().push_total == 2 * update
    assert sampled == [update % interval == 0 for update in range(1, 9)]


def test_samples_wait_until_there_is_enough() -> None:
    replay = Replay(spec_for(100, min_segments=5))
    toy = slow.ToyLanes(2, SEGMENT.stack, SEGMENT.actions, seed=0)
    batches = [replay.push_and_sample(toy.rollout(3)[0], 5, 0.0) for _ in range(4)]
    assert [batch is not None for batch in batches] == [False, False, True, True]


@pytest.mark.parametrize("on_device", [False, True])
def test_new_priorities_change_what_is_drawn(on_device: bool) -> None:
    spec = spec_for(8, alpha=1.0, beta=BetaSchedule(1.0, 1.0), device_sampler=on_device)
    replay = Replay(spec, seed=3)
    toy = slow.ToyLanes(4, SEGMENT.stack, SEGMENT.actions, seed=0)
    replay.push(toy.rollout(6)[0])
    batch = replay.sample(64, 0.0)
    assert batch.rollout.lanes == 64
    priorities = torch.where(batch.slots == 5, 99.0, 0.0)
    priorities[batch.slots == 6] = math.nan  # left alone, at the initial 1
    replay.update_priorities(batch, priorities)
    weights = replay.sampler.get(torch.arange(8))
    expected = torch.full((8,), 1e-3).scatter(0, torch.tensor([5, 6]), torch.tensor([99.001, 1.0]))
    torch.testing.assert_close(weights.float(), expected)
    again = replay.sample(200, 0.0)
    assert (again.slots == 5).float().mean() > 0.95
    # Full correction: weight * probability is the same for all.
    share = weights.float()[again.slots] * again.weights
    torch.testing.assert_close(share, share[0].expand_as(share))
    assert float(again.weights.max()) == 1.0


@pytest.mark.parametrize("on_device", [False, True])
def test_a_segment_overwritten_meanwhile_keeps_its_own_priority(on_device: bool) -> None:
    replay = Replay(spec_for(4, alpha=1.0, device_sampler=on_device))
    toy = slow.ToyLanes(2, SEGMENT.stack, SEGMENT.actions, seed=0)
    replay.push(toy.rollout(6)[0])
    batch = replay.sample(32, 0.0)
    replay.push(toy.rollout(3)[0])  # over slots 0 and 1
    replay.update_priorities(batch, torch.full((32,), 7.0))
    weights = replay.sampler.get(torch.arange(4)).float()
    torch.testing.assert_close(weights, torch.tensor([1.0, 1.0, 7.001, 7.001]))


@pytest.mark.parametrize("on_device", [False, True])
def test_resuming_goes_on_with_the_same_bits(on_device: bool) -> None:
    def train(replay: Replay, toy: slow.ToyLanes, updates: int) -> list[SegmentBatch]:
        batches = []
        for _ in range(updates):
            batch = replay.push_and_sample(toy.rollout(6)[0], 4, 0.3)
            if batch is not None:
                replay.update_priorities(batch, batch.rollout.rewards.abs().sum(0))
                batches.append(batch)
        return batches

    spec = spec_for(10, sample_interval=2, device_sampler=on_device)
    replay, toy = Replay(spec, seed=1), slow.ToyLanes(2, SEGMENT.stack, SEGMENT.actions, seed=0)
    train(replay, toy, 5)
    saved = copy.deepcopy(replay.state_dict())
    other = Replay(spec, seed=99)
    other.load_state_dict(saved)
    twins = train(replay, copy.deepcopy(toy), 6), train(other, toy, 6)
    assert len(twins[0]) == 3
    for ours, theirs in zip(*twins, strict=True):
        pairs = zip(
            (*ours[1:], *ours.rollout[:-1]), (*theirs[1:], *theirs.rollout[:-1]), strict=True
        )
        assert all(torch.equal(one, two) for one, two in pairs)
    timeless: dict[str, Any] = {
        "sample_ms": 0.0,
        "search_ms": 0.0,
        "gather_ms": 0.0,
        "copy_ms": 0.0,
    }
    assert replace(replay.stats(), **timeless) == replace(other.stats(), **timeless)


def test_a_slow_device_sampler_is_given_up() -> None:
    """Draws of 2 ms against a limit of 1 ms; the clock is the test's."""
    moments = iter(np.arange(0.0, 10.0, 0.002).tolist())
    spec = spec_for(8, device_sampler=True, fallback_ms=1.0, alpha=1.0)
    replay = Replay(spec, now=lambda: next(moments))
    replay.push(slow.ToyLanes(4, SEGMENT.stack, SEGMENT.actions, seed=0).rollout(6)[0])
    kinds = []
    for draw in range(5):
        batch = replay.sample(8, 0.0)
        replay.update_priorities(batch, torch.arange(8.0) + draw)
        kinds.append(replay.on_device)
    assert kinds == [True, True, False, False, False]
    assert replay.stats().sample_ms == pytest.approx(6.0)
    back = Replay(spec, now=lambda: next(moments))
    back.load_state_dict(replay.state_dict())
    assert not back.on_device
    assert torch.equal(back.sample(8, 0.0).slots, replay.sample(8, 0.0).slots)
    # States of before do not say what was asked for, and still fall back.
    old = replay.state_dict()
    del old["device_sampler"]
    back = Replay(spec, now=lambda: next(moments))
    back.load_state_dict(old)
    assert not back.on_device


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("old", [False, True])
def test_another_sampler_is_used_when_it_is_asked_for(before: bool, old: bool) -> None:
    """A run that goes on with another --per-gpu-sample than it had."""
    replay = Replay(spec_for(8, device_sampler=before, alpha=1.0))
    replay.push(slow.ToyLanes(4, SEGMENT.stack, SEGMENT.actions, seed=0).rollout(6)[0])
    batch = replay.sample(8, 0.0)
    replay.update_priorities(batch, torch.arange(8.0))
    state = replay.state_dict()
    if old:
        del state["device_sampler"]
    # A generator of a GPU has another state, which fits no other sampler.
    state["sampler"]["generator"] = torch.zeros(16, dtype=torch.uint8)
    other = Replay(spec_for(8, device_sampler=not before, alpha=1.0))
    other.load_state_dict(state)
    assert other.on_device is not before
    slots = torch.arange(8)
    assert torch.allclose(other.sampler.get(slots).double(), replay.sampler.get(slots).double())
    other.sample(8, 0.0)
    assert (other.pushes, other.samples) == (replay.pushes, replay.samples + 1)


def test_statistics() -> None:
    replay = Replay(spec_for(16, alpha=0.5))
    empty = replay.stats()
    assert (empty.fill, empty.samples, empty.priority_mean) == (0.0, 0, 0.0)
    replay.push(slow.ToyLanes(4, SEGMENT.stack, SEGMENT.actions, seed=0).rollout(6)[0])
    slots = torch.arange(8)
    priorities = torch.arange(8.0)
    replay.sampler.set(slots, (priorities + 1e-3) ** 0.5)
    for _ in range(2):
        replay.sample(4, 0.0)
    stats = replay.stats()
    assert stats.fill == 0.5
    assert (stats.push_total, stats.samples) == (8, 2)
    assert stats.priority_mean == pytest.approx(3.501, rel=1e-4)
    assert stats.priority_p50 == pytest.approx(3.501, rel=1e-4)
    assert stats.priority_p90 == pytest.approx(6.301, rel=1e-4)
    assert stats.priority_p99 == pytest.approx(6.931, rel=1e-4)
    assert 0.25 <= stats.unique <= 1.0
    assert 0.25 <= stats.avg_unique <= 1.0
    assert stats.stat_line().startswith("[replay][stat] fill=50.0% unique=")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"alpha": 1.5}, "alpha must be in"),
        ({"epsilon": 0.0}, "epsilon must be above 0"),
        ({"sample_interval": 0}, "must be at least 1, and are 0 and 1"),
        ({"min_segments": 9}, "waits for 9 segments and has room for 8"),
        ({"memory_bytes": 10}, "cannot hold one segment"),
    ],
)
def test_nonsense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(spec_for(8), **change)
    with pytest.raises(ValueError, match="nothing to replay yet"):
        Replay(spec_for(8)).sample(1, 0.0)


@PROPERTY
@given(
    capacity=st.integers(1, 30),
    share=st.integers(1, 3),
    pushes=st.integers(1, 12),
    ranks=st.sampled_from([(2, 3), (3, 2), (1, 2), (2, 1)]),
    saved_at=st.integers(1, 12),
    seed=st.integers(0, 2**32),
)
def test_ranks_hold_what_one_process_holds(
    capacity: int, share: int, pushes: int, ranks: tuple[int, int], saved_at: int, seed: int
) -> None:
    """Every segment is with one rank; saved together, they are what one process saves, and other
    numbers of ranks go on from there."""
    lanes = 6 * share
    toy = slow.ToyLanes(lanes, SEGMENT.stack, SEGMENT.actions, seed)
    whole = SegmentStorage(SEGMENT, capacity, "cpu")

    def make(count: int) -> list[SharedStorage]:
        parts = [Part(rank, count, lanes) for rank in range(count)]
        return [SharedStorage(SEGMENT, capacity, "cpu", part) for part in parts]

    shared = make(ranks[0])
    for push in range(1, pushes + 1):
        rollout, _ = toy.rollout(SEGMENT.length)
        slots = whole.push(rollout)
        own = lanes // len(shared)
        for rank, one in enumerate(shared):
            part = rollout.select(torch.arange(rank * own, (rank + 1) * own))
            assert torch.equal(one.push(part), slots)
        if push == saved_at:
            saved = joined([one.state_dict() for one in shared])
            require_equal(saved, whole.state_dict())
            shared = make(ranks[1])
            for one in shared:
                one.load_state_dict(saved)
    everything = torch.arange(whole.size)
    owned = torch.stack([one.is_own(everything) for one in shared])
    assert owned.sum(0).tolist() == [1] * whole.size
    for one, mine in zip(shared, owned, strict=True):
        assert (one.size, one.written) == (whole.size, whole.written)
        assert torch.equal(one.serials(everything), whole.serials(everything))
        for ours, theirs in zip(
            one.gather(everything)[:-1], whole.gather(everything[mine])[:-1], strict=True
        ):
            assert torch.equal(ours, theirs)


def require_equal(mine: dict[str, Any], yours: dict[str, Any]) -> None:
    assert (mine["capacity"], mine["written"]) == (yours["capacity"], yours["written"])
    assert torch.equal(mine["serials"], yours["serials"])
    assert mine["arrays"].keys() == yours["arrays"].keys()
    assert all(torch.equal(mine["arrays"][name], part) for name, part in yours["arrays"].items())


def test_a_ring_of_other_segments_is_refused_by_every_rank() -> None:
    one = SharedStorage(SEGMENT, 8, "cpu", Part(1, 2, 4))
    for other, capacity in ((SEGMENT, 9), (replace(SEGMENT, length=4), 8)):
        saved = SegmentStorage(other, capacity, "cpu").state_dict()
        with pytest.raises(ValueError, match="other segments or another capacity"):
            one.load_state_dict(saved)
    toy = slow.ToyLanes(4, SEGMENT.stack, SEGMENT.actions, 0)
    with pytest.raises(ValueError, match="a rank stores 2 segments of 3 steps at once, not 4 of 3"):
        one.push(toy.rollout(3)[0])


def test_ranks_give_the_device_sampler_up_together() -> None:
    """One of them is slow; the other hears of it at the next sample, as does the slow one."""
    clocks = [iter(range(0, 10**6, 1)), iter(range(0, 10**9, 10**3))]
    wishes: list[bool] = []
    toy = slow.ToyLanes(4, SEGMENT.stack, SEGMENT.actions, 0)
    replays = [
        Replay(
            spec_for(8, device_sampler=True, fallback_ms=5e4),
            part=Part(rank, 2, 4),
            now=lambda clock=clock: float(next(clock)),  # type: ignore[misc]
            agree=lambda wish: wishes.append(wish) or any(wishes),  # type: ignore[func-returns-value]
        )
        for rank, clock in enumerate(clocks)
    ]
    kinds = []
    for _ in range(6):
        rollout, _ = toy.rollout(SEGMENT.length)
        wishes.clear()
        # The slow one is asked first, so that its wish is known to both.
        for rank in (1, 0):
            replays[rank].push(rollout.select(torch.arange(2 * rank, 2 * rank + 2)))
            replays[rank].sample(4, 0.0)
        kinds.append([one.on_device for one in replays])
    assert kinds == [[True, True]] * 3 + [[False, False]] * 3
