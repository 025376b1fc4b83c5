"""Storage, sum tree, samplers and statistics, each by itself."""

import math
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import torch
from reference_replay import ToyLanes

from warpzone.data.replay.replay import segment_priorities
from warpzone.data.replay.sampler import (
    BetaSchedule,
    ScanSampler,
    SlowGuard,
    TreeSampler,
    importance_weights,
)
from warpzone.data.replay.stats import DrawClock, ReplayStats, unique_ratio
from warpzone.data.replay.storage import (
    FP16_MAX,
    SegmentSpec,
    SegmentStorage,
    fp16_scalars_default,
    state_layout,
)
from warpzone.data.replay.sum_tree import SumTree

SPEC = SegmentSpec(length=4, stack=3, picture=(3, 2), actions=5, fp16_scalars=False)


def test_scalars_take_two_bytes_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MARIO_PER_FP16_SCALARS", raising=False)
    half = SegmentSpec(length=4, stack=3, picture=(3, 2), actions=5)
    assert half.fp16_scalars
    monkeypatch.setenv("MARIO_PER_FP16_SCALARS", "0")
    assert not fp16_scalars_default()
    full = SegmentSpec(length=4, stack=3, picture=(3, 2), actions=5)
    assert not full.fp16_scalars
    # Rewards, values and final values: three numbers a step.
    assert full.bytes - half.bytes == 3 * 4 * 2


def test_fp16_scalars_round_trip_as_float32() -> None:
    rollout, _ = ToyLanes(2, 3, actions=5, seed=0).rollout(4)
    rollout.rewards[0, 0] = 1e6
    storage = SegmentStorage(replace(SPEC, fp16_scalars=True), 2, "cpu")
    storage.push(rollout)
    back = storage.gather(torch.arange(2))
    for name in ("rewards", "values", "final_value"):
        ours, theirs = getattr(back, name), getattr(rollout, name).clamp(-FP16_MAX, FP16_MAX)
        assert ours.dtype == torch.float32
        torch.testing.assert_close(ours, theirs, rtol=2**-11, atol=1e-6)
        assert torch.equal(ours, theirs.half().float())
    for name in ("logits", "log_prob", "last_value"):
        assert torch.equal(getattr(back, name), getattr(rollout, name))


def test_memory_states_come_back_with_their_segments() -> None:
    first = (torch.randn(2, 3), torch.arange(2))
    second = (torch.randn(2, 3), torch.arange(2) + 5)
    toy = ToyLanes(2, 3, actions=5, seed=0)
    storage = SegmentStorage(replace(SPEC, state=state_layout(first)), 4, "cpu")
    for state in (first, second):
        storage.push(toy.rollout(4, state)[0])
    back = storage.gather(torch.tensor([3, 0])).state
    assert torch.equal(back[0], torch.stack([second[0][1], first[0][0]]))
    assert back[1].tolist() == [6, 0]
    with pytest.raises(ValueError, match="2 segments knows the memory before the first one only"):
        storage.push(toy.rollout(8, first)[0])


def test_impossible_requests_are_refused() -> None:
    big = SegmentSpec(length=64, stack=4, picture=(84, 84), actions=7)
    assert big.capacity(2**30) == 2**30 // big.bytes
    with pytest.raises(
        ValueError, match=r"0\.10 MiB cannot hold one segment: 64 steps of 84x84 frames need 0\.46"
    ):
        big.capacity(100_000)
    rollout, _ = ToyLanes(1, 3, actions=5, seed=0).rollout(6)
    with pytest.raises(ValueError, match="6 steps does not divide into segments of 4"):
        SegmentStorage(SPEC, 2, "cpu").push(rollout)
    with pytest.raises(ValueError, match="at least one step, not 0"):
        replace(SPEC, length=0)
    with pytest.raises(ValueError, match="at least one segment, not 0"):
        SegmentStorage(SPEC, 0, "cpu")


def test_a_saved_storage_of_another_shape_is_refused() -> None:
    saved = SegmentStorage(SPEC, 2, "cpu").state_dict()
    with pytest.raises(ValueError, match=r"another capacity \(2, not 3\)"):
        SegmentStorage(SPEC, 3, "cpu").load_state_dict(saved)
    with pytest.raises(ValueError, match="other segments"):
        SegmentStorage(replace(SPEC, length=5), 2, "cpu").load_state_dict(saved)


def test_the_tree_never_finds_an_empty_leaf() -> None:
    tree = SumTree(5)
    tree.set(np.array([1, 3]), np.array([0.1, 0.7]))
    beyond = np.nextafter(tree.total, 1.0)
    assert (
        tree.find(np.array([0.0, 0.05, 0.1, 0.5, tree.total, beyond])).tolist() == [1, 1] + [3] * 4
    )
    tree.set(np.array([], dtype=np.int64), np.array([]))
    assert tree.total == 0.1 + 0.7


@pytest.mark.parametrize(
    ("indices", "weights", "error"),
    [
        ([5], [1.0], IndexError),
        ([0, 5], [1.0, 1.0], IndexError),
        ([-1, 0], [1.0, 1.0], IndexError),
        ([-1], [1.0], IndexError),
        ([0], [-1.0], ValueError),
        ([0], [math.nan], ValueError),
        ([0], [math.inf], ValueError),
    ],
)
def test_a_bad_weight_never_enters_the_tree(
    indices: list[int], weights: list[float], error: type[Exception]
) -> None:
    tree = SumTree(5)
    with pytest.raises(error):
        tree.set(np.array(indices), np.array(weights))
    assert tree.total == 0.0


@pytest.mark.parametrize("kind", ["tree", "scan"])
def test_of_a_repeated_slot_the_larger_weight_stays(kind: str) -> None:
    sampler = TreeSampler(6, 0) if kind == "tree" else ScanSampler(6, 0, "cpu")
    sampler.set(torch.tensor([0, 1, 2]), torch.tensor([9.0, 9.0, 9.0]))
    sampler.set(torch.tensor([1, 2, 1, 1]), torch.tensor([2.0, 5.0, 4.0, 3.0]))
    assert sampler.get(torch.arange(4)).tolist() == [9.0, 4.0, 5.0, 0.0]
    sampler.set_new(torch.tensor([5]))
    assert sampler.get(torch.tensor([5])).tolist() == [9.0]


def test_random_numbers_of_another_device_are_left_alone() -> None:
    saved = ScanSampler(6, 0, "cpu")
    saved.set(torch.tensor([0, 3]), torch.tensor([2.0, 5.0]))
    # A CUDA generator's state is 16 bytes.
    state = saved.state_dict() | {"generator": torch.zeros(16, dtype=torch.uint8)}
    sampler, untouched = ScanSampler(6, 1, "cpu"), ScanSampler(6, 1, "cpu")
    sampler.load_state_dict(state)
    untouched.set(torch.tensor([0, 3]), torch.tensor([2.0, 5.0]))
    assert sampler.get(torch.arange(4)).tolist() == [2.0, 0.0, 0.0, 5.0]
    assert torch.equal(sampler.sample(20, 6)[0], untouched.sample(20, 6)[0])


def test_importance_weights() -> None:
    probability = torch.tensor([0.5, 0.25, 0.125])
    weights = importance_weights(probability, 8, beta=0.5)
    expected = torch.tensor([(8 * p) ** -0.5 for p in (0.5, 0.25, 0.125)])
    torch.testing.assert_close(weights, expected / expected.max())
    assert importance_weights(probability, 8, beta=0.0).tolist() == [1.0, 1.0, 1.0]
    beta = BetaSchedule(0.4, 1.0)
    assert (beta(0.0), beta(0.5), beta(1.0), beta(2.0)) == (0.4, 0.7, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"beta must be in \[0, 1\], and is 1.5"):
        BetaSchedule(0.4, 1.5)


def test_segment_priorities() -> None:
    errors = torch.tensor([[1.0, -100.0], [-3.0, 2.0], [2.0, 0.0]])
    torch.testing.assert_close(
        segment_priorities(errors), torch.tensor([0.9 * 3 + 0.1 * 2, 0.9 * 100 + 0.1 * 34])
    )


def test_the_guard_counts_slow_draws_in_a_row() -> None:
    guard = SlowGuard(limit_ms=1.0)
    assert [guard.record(ms) for ms in (2, 2, 0.5, 2, 2, 2)] == [False] * 5 + [True]
    patient = SlowGuard(limit_ms=None)
    assert not any(patient.record(1e9) for _ in range(10))


def test_the_clock_splits_a_draw() -> None:
    moments = iter([1.0, 1.25, 1.5, 2.5])
    clock = DrawClock(torch.device("cpu"), lambda: next(moments))
    for name in ("begin", "search", "gather", "copy"):
        clock.lap(name)
    clock.close()
    assert clock.finished() == [{"search": 250.0, "gather": 250.0, "copy": 1000.0}]
    assert clock.finished() == []


def test_unique_ratio() -> None:
    assert float(unique_ratio(torch.tensor([3, 1, 3, 3]))) == 0.5
    assert float(unique_ratio(torch.tensor([7]))) == 1.0


def test_the_stat_line() -> None:
    names = ReplayStats.__dataclass_fields__
    zeros: dict[str, Any] = dict.fromkeys(names, 0)
    stats = ReplayStats(**zeros)
    line = replace(stats, fill=0.12345, unique=1.0, avg_unique=0.5).stat_line()
    assert line == "[replay][stat] fill=12.3% unique=100.0% avg_unique=50.0%"


def test_draws_on_a_gpu_are_timed_by_events_in_its_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = iter([1.0, 3.5, 10.0, 20.0])
    done = False

    class Event:
        def __init__(self, device: str, *, enable_timing: bool) -> None:
            assert device == "cuda"
            assert enable_timing
            self.at: float | None = None

        def record(self) -> None:
            self.at = next(queue)

        def query(self) -> bool:
            return done

        def elapsed_time(self, end: Any) -> float:
            return float(end.at - self.at)

    monkeypatch.setattr(torch, "Event", Event)
    clock = DrawClock(torch.device("cuda"))
    for laps in (("begin", "sample"), ("begin", "gather")):
        for name in laps:
            clock.lap(name)
        clock.close()
    assert clock.finished() == []
    done = True
    assert clock.finished() == [{"sample": 2.5}, {"gather": 10.0}]
    assert clock.finished() == []


def test_a_schedule_does_not_change() -> None:
    """A sampler and the checkpoint that describes it hold the same one."""
    schedule = BetaSchedule(0.4, 1.0)
    with pytest.raises(FrozenInstanceError):
        schedule.start = 0.9  # type: ignore[misc]
    assert schedule(0.0) == 0.4
