"""Prioritised replay of rollout segments: every update pushes, every N-th samples."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from warpzone.data.replay.interval import Interval
from warpzone.data.replay.sampler import (
    PATIENCE,
    BetaSchedule,
    ScanSampler,
    SlowGuard,
    TreeSampler,
    importance_weights,
)
from warpzone.data.replay.shared import Part, SharedStorage
from warpzone.data.replay.stats import DrawClock, ReplayStats, unique_ratio
from warpzone.data.replay.storage import SegmentSpec, SegmentStorage
from warpzone.data.types import Rollout

PARTS = ("search", "gather", "copy")
QUANTILES = (0.5, 0.9, 0.99)
#: How much a segment's largest error counts for its priority; the mean counts for the rest.
ETA = 0.9


@dataclass(frozen=True)
class ReplaySpec:
    """How replay behaves."""

    #: What is stored.
    segment: SegmentSpec
    #: The most memory it may take.
    memory_bytes: int
    #: How much priorities count: 0 draws evenly, 1 in proportion.
    alpha: float = 0.6
    #: The importance exponent over the run.
    beta: BetaSchedule = field(default_factory=BetaSchedule)
    #: Added to every priority, so that nothing is never drawn again.
    epsilon: float = 1e-3
    #: Samples are due at every N-th push.
    sample_interval: int = 1
    #: Above that, the interval follows the variance of TD errors, up to this.
    max_interval: int = 0
    #: Segments that must be there before samples are due.
    min_segments: int = 1
    #: Draw on the storage's device instead of the CPU.
    device_sampler: bool = False
    #: Give the device sampler up when it is slower than this three times in a row; None never.
    fallback_ms: float | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.alpha <= 1.0:
            raise ValueError(f"alpha must be in [0, 1], and is {self.alpha}")
        if self.epsilon <= 0.0:
            raise ValueError(f"epsilon must be above 0, and is {self.epsilon}")
        if self.sample_interval < 1 or self.min_segments < 1:
            raise ValueError(
                "sample_interval and min_segments must be at least 1, and are "
                f"{self.sample_interval} and {self.min_segments}"
            )
        if self.min_segments > self.capacity:
            raise ValueError(
                f"replay waits for {self.min_segments} segments and has room for {self.capacity}"
            )

    @property
    def capacity(self) -> int:
        """Segments that fit into the memory."""
        return self.segment.capacity(self.memory_bytes)


class SegmentBatch(NamedTuple):
    """N segments, and what learning from them needs. Of several ranks each has its own segments
    of a sample as lanes of a rollout; everything else is about all."""

    rollout: Rollout
    #: float32 [N]: importance weights, the largest 1.
    weights: Tensor
    #: int64 [N], where the segments were found.
    slots: Tensor
    #: int64 [N], which ones they were.
    serials: Tensor


def segment_priorities(errors: Tensor) -> Tensor:
    """[L, N] TD errors -> [N]: eta * max + (1 - eta) * mean (Kapturowski et al. 2019)."""
    sizes = errors.detach().abs()
    return ETA * sizes.amax(0) + (1.0 - ETA) * sizes.sum(0) / len(sizes)


class Replay:
    """Ties storage, sampler and statistics together."""

    def __init__(
        self,
        spec: ReplaySpec,
        *,
        storage_device: torch.device | str = "cpu",
        device: torch.device | str = "cpu",
        seed: int = 0,
        now: Callable[[], float] = time.perf_counter,
        part: Part | None = None,
        agree: Callable[[bool], bool] | None = None,
    ) -> None:
        """Segments live on `storage_device`, samples are handed out on `device`. part: of several
        ranks, which must push, sample and update together; agree: whether any of them says so."""
        self.spec = spec
        self.device = torch.device(device)
        self.storage: SegmentStorage | SharedStorage
        if part is None:
            self.storage = SegmentStorage(spec.segment, spec.capacity, storage_device)
        else:
            self.storage = SharedStorage(spec.segment, spec.capacity, storage_device, part)
        self._agree = agree
        self._too_slow = False
        self.seed = seed
        self.pushes = 0
        self.samples = 0
        self.sampler: TreeSampler | ScanSampler = self._make_sampler(spec.device_sampler)
        self.interval = Interval(spec.sample_interval, spec.max_interval)
        self._sampled_at = 0
        self._guard = SlowGuard(spec.fallback_ms)
        self._now = now
        self._clock = self._make_clock()
        self._unique_last = torch.zeros((), device=self.sampler.device)
        self._unique_sum = torch.zeros((), dtype=torch.float64, device=self.sampler.device)
        self._times = dict.fromkeys(PARTS, 0.0)
        self._timed = 0

    @property
    def size(self) -> int:
        """Segments stored."""
        return self.storage.size

    @property
    def on_device(self) -> bool:
        """Whether draws are made by the device sampler."""
        return isinstance(self.sampler, ScanSampler)

    @property
    def due(self) -> bool:
        """Whether the latest push is one after which to sample."""
        if self.interval.adaptive:
            on_turn = self.pushes - self._sampled_at >= self.interval.value
        else:
            on_turn = self.pushes > 0 and self.pushes % self.spec.sample_interval == 0
        return on_turn and self.size >= self.spec.min_segments

    def push(self, rollout: Rollout) -> Tensor:
        """Stores a rollout's segments with the highest priority so far; returns their slots."""
        slots = self.storage.push(rollout)
        self.sampler.set_new(slots)
        self.pushes += 1
        return slots

    def sample(self, count: int, progress: float) -> SegmentBatch:
        """`count` segments, at a share of the run in [0, 1]."""
        if self.size == 0:
            raise ValueError("there is nothing to replay yet")
        self._sampled_at = self.pushes
        if self._agree is not None and self.on_device and self._agree(self._too_slow):
            self._fall_back()
        self._clock.lap("begin")
        slots, probability = self.sampler.sample(count, self.size)
        weights = importance_weights(probability, self.size, self.spec.beta(progress))
        self._clock.lap("search")
        rollout = self.storage.gather(slots)
        serials = self.storage.serials(slots)
        self._clock.lap("gather")
        rollout = rollout.to(self.device, non_blocking=True)
        weights = weights.to(self.device, non_blocking=True)
        self._clock.lap("copy")
        self._clock.close()
        self._record_unique(slots)
        self._record_times()
        return SegmentBatch(rollout, weights, slots, serials)

    def own(self, batch: SegmentBatch) -> Tensor | None:
        """bool [N]: the segments of the newest sample that its rollout has, which are this rank's;
        None if there are no other ranks."""
        if not isinstance(self.storage, SharedStorage):
            return None
        return self.storage.is_own(batch.slots).to(self.device)

    def push_and_sample(self, rollout: Rollout, count: int, progress: float) -> SegmentBatch | None:
        """What one update does: always push, and sample when it is due."""
        self.push(rollout)
        return self.sample(count, progress) if self.due else None

    def update_priorities(self, batch: SegmentBatch, priorities: Tensor) -> None:
        """Sets the priorities of a sample, [N].

        A segment that was overwritten since, or whose priority is not finite, is left alone.
        """
        home = self.sampler.device
        known = self.storage.serials(batch.slots).to(home) == batch.serials.to(home)
        weights = self._weigh(priorities.detach().to(home))
        usable = known & weights.isfinite()
        current = self.sampler.get(batch.slots)
        self.sampler.set(batch.slots, torch.where(usable, weights.to(current.dtype), current))

    def stats(self) -> ReplayStats:
        """Numbers to log; waits for the device."""
        self._record_times()
        weights = self.sampler.get(torch.arange(self.size)).double().cpu()
        # Weights are priorities ** alpha; with alpha 0 they tell nothing about them.
        exponent = 1.0 / self.spec.alpha if self.spec.alpha else 1.0
        priorities = weights**exponent if self.size else torch.zeros(1, dtype=torch.float64)
        middle, high, top = torch.quantile(priorities, torch.tensor(QUANTILES).double()).tolist()
        means = {part: total / max(1, self._timed) for part, total in self._times.items()}
        return ReplayStats(
            fill=self.size / self.storage.capacity,
            unique=float(self._unique_last),
            avg_unique=float(self._unique_sum) / max(1, self.samples),
            push_total=self.storage.written,
            samples=self.samples,
            priority_mean=float(priorities.mean()),
            priority_p50=middle,
            priority_p90=high,
            priority_p99=top,
            sample_ms=sum(means.values()),
            search_ms=means["search"],
            gather_ms=means["gather"],
            copy_ms=means["copy"],
            on_device=self.on_device,
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything the next push, sample and update depend on."""
        return {
            "storage": self.storage.state_dict(),
            "sampler": self.sampler.state_dict(),
            "on_device": self.on_device,
            "device_sampler": self.spec.device_sampler,
            "pushes": self.pushes,
            "samples": self.samples,
            "sampled_at": self._sampled_at,
            "interval": self.interval.state_dict(),
            "slow": self._guard.slow,
            "unique": torch.stack([self._unique_last.double(), self._unique_sum]).cpu(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.storage.load_state_dict(state["storage"])
        slow, was_on_device = int(state["slow"]), bool(state["on_device"])
        # What was asked for; states of before do not say, but those that fell back had slow draws.
        asked = bool(state.get("device_sampler", was_on_device or slow >= PATIENCE))
        if asked == self.spec.device_sampler:
            if was_on_device != self.on_device:
                self._use(self._make_sampler(was_on_device))
            self.sampler.load_state_dict(state["sampler"])
            self._guard.slow = slow
        else:
            # Another one is asked for now: it takes the weights, and draws its own numbers.
            self._use(self._make_sampler(self.spec.device_sampler))
            self.sampler.take_weights(state["sampler"])
        self.pushes = int(state["pushes"])
        self.samples = int(state["samples"])
        # States of before have neither; their interval was fixed.
        self._sampled_at = int(state.get("sampled_at", self.pushes))
        if "interval" in state:
            self.interval.load_state_dict(state["interval"])
        last, total = state["unique"].to(self.sampler.device)
        self._unique_last, self._unique_sum = last.float(), total

    def _use(self, sampler: TreeSampler | ScanSampler) -> None:
        self.sampler = sampler
        self._clock = self._make_clock()

    def _make_sampler(self, on_device: bool) -> TreeSampler | ScanSampler:
        if on_device:
            return ScanSampler(self.spec.capacity, self.seed, self.storage.device)
        return TreeSampler(self.spec.capacity, self.seed)

    def _make_clock(self) -> DrawClock:
        return DrawClock(self.sampler.device, self._now)

    def _weigh(self, priorities: Tensor) -> Tensor:
        return (priorities.abs() + self.spec.epsilon) ** self.spec.alpha

    def _record_unique(self, slots: Tensor) -> None:
        self.samples += 1
        self._unique_last = unique_ratio(slots)
        self._unique_sum = self._unique_sum + self._unique_last

    def _record_times(self) -> None:
        for parts in self._clock.finished():
            self._timed += 1
            for name, milliseconds in parts.items():
                self._times[name] += milliseconds
            # Reading and moving segments costs the same for both samplers.
            if self.on_device and self._guard.record(parts["search"]):
                self._too_slow = True
                if self._agree is None:
                    self._fall_back()

    def _fall_back(self) -> None:
        tree = TreeSampler(self.spec.capacity, self.seed)
        tree.take_weights(self.sampler.state_dict())
        self._use(tree)
        self._unique_last = self._unique_last.cpu()
        self._unique_sum = self._unique_sum.cpu()
