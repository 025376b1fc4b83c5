"""What replay reports, and the clock that times its draws."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

#: A moment: seconds on the host's clock, or an event in the device's queue.
Mark = float | torch.Event


@dataclass(frozen=True)
class ReplayStats:
    """A look at the replay memory."""

    #: Share of the capacity in use.
    fill: float
    #: Distinct segments over segments, in the latest draw and on average; 0 before any.
    unique: float
    avg_unique: float
    #: Segments ever stored.
    push_total: int
    #: Draws so far.
    samples: int
    #: Of the stored segments' priorities.
    priority_mean: float
    priority_p50: float
    priority_p90: float
    priority_p99: float
    #: Mean time of a draw and its parts: choosing, reading, moving to the learner.
    sample_ms: float
    search_ms: float
    gather_ms: float
    copy_ms: float
    #: Whether draws are made on the device.
    on_device: bool

    def stat_line(self) -> str:
        """The line that logs carry."""
        return (
            f"[replay][stat] fill={100 * self.fill:.1f}% unique={100 * self.unique:.1f}% "
            f"avg_unique={100 * self.avg_unique:.1f}%"
        )


class DrawClock:
    """Times draws without waiting for them.

    On CUDA the work is only queued when a call returns; events in the queue tell later how long it
    took. `finished` gives the times of the draws that are known by then.
    """

    def __init__(self, device: torch.device, now: Callable[[], float] = time.perf_counter) -> None:
        self._cuda = device.type == "cuda"
        self._now = now
        self._open: list[tuple[str, Mark]] = []
        self._pending: deque[list[tuple[str, Mark]]] = deque()

    def lap(self, name: str) -> None:
        """Ends the part that ran until now and calls it `name`; the first lap begins a draw."""
        if self._cuda:
            event = torch.Event("cuda", enable_timing=True)
            event.record()
            self._open.append((name, event))
        else:
            self._open.append((name, self._now()))

    def close(self) -> None:
        """Ends the draw."""
        self._pending.append(self._open)
        self._open = []

    def finished(self) -> list[dict[str, float]]:
        """Milliseconds of each part of the draws that are done, oldest first, each draw once."""
        done = []
        while self._pending and _is_known(self._pending[0][-1][1]):
            marks = pairwise(self._pending.popleft())
            done.append({name: _between(before, after) for (_, before), (name, after) in marks})
        return done


def _is_known(mark: Mark) -> bool:
    return bool(mark.query()) if isinstance(mark, torch.Event) else True


def _between(before: Mark, after: Mark) -> float:
    if isinstance(before, torch.Event) and isinstance(after, torch.Event):
        return float(before.elapsed_time(after))
    return 1000.0 * (cast(float, after) - cast(float, before))


def unique_ratio(slots: Tensor) -> Tensor:
    """Distinct slots over slots, 0-dim, without a look at the numbers."""
    ordered = slots.sort().values
    distinct = (ordered[1:] != ordered[:-1]).sum() + 1
    return distinct.float() / slots.shape[0]
