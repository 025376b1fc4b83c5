"""The network in an evaluation: a lane's decisions do not depend on other lanes."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.model.agent import Agent
from warpzone.model.memory import State

#: Lanes in a batch. Always this many, padded with empty ones: the order of sums depends on the
#: number of lanes (and of threads), and rounding can change an episode.
CPU_BATCH = 32
CUDA_BATCH = 512


def batch_size(device: torch.device) -> int:
    """One batch of lanes for the network."""
    return CUDA_BATCH if device.type == "cuda" else CPU_BATCH


def decide_lanes(
    agent: Agent,
    lanes: Tensor,
    stacks: Callable[[Tensor], Tensor],
    previous: Tensor,
    state: State,
    starts: Tensor,
) -> tuple[Tensor, Tensor]:
    """Logits and values of at most a batch of lanes, whose memory in `state` moves on. `stacks`
    shows what some lanes see; `previous` and `starts` are of all lanes, like `state`."""
    count = len(lanes)
    filled = torch.cat((lanes, lanes[:1].expand(batch_size(lanes.device) - count)))
    before = tuple(part[filled] for part in state)
    output = agent.act(stacks(filled), previous[filled], before, starts[filled])
    for kept, new in zip(state, output.state, strict=True):
        kept[lanes] = new[:count]
    return output.logits[:count].float(), output.value[:count].float()


class Decisions(NamedTuple):
    """The network's outputs for some lanes, on the host."""

    logits: NDArray[np.float32]
    values: NDArray[np.float32]


class Policy:
    """Frame stacks, memory and previous actions of all lanes of an evaluation, on the device.

    On a CPU each core takes batches of its own: with one thread for a batch both cores of a small
    machine decide half as fast again as with all threads on one batch after the other.
    """

    def __init__(
        self, agent: Agent, frames: NDArray[np.uint8], *, threads: int | None = None
    ) -> None:
        """`frames`: the first of each lane, [lanes, height, width]."""
        self.agent = agent
        self.device = next(agent.parameters()).device
        self.lanes = len(frames)
        self._batch = batch_size(self.device)
        #: A ring of the last frames; all lanes are at the same step.
        self._ring = torch.zeros(
            (agent.spec.stack, *frames.shape), dtype=torch.uint8, device=self.device
        )
        self._newest = agent.spec.stack - 1
        self._state = agent.initial_state(self.lanes, device=self.device)
        self._actions = torch.zeros(self.lanes, dtype=torch.int64, device=self.device)
        self._starts = torch.ones(self.lanes, dtype=torch.bool, device=self.device)
        self.begin(np.arange(self.lanes), frames)
        self._workers = None if self.device.type == "cuda" else workers(threads or cores())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._workers is not None:
            self._workers.shutdown()

    def begin(self, lanes: NDArray[np.int64], frames: NDArray[np.uint8]) -> None:
        """These lanes begin as episodes of training do: the memory is empty, no action came
        before, and the whole stack is the first frame."""
        rows = torch.from_numpy(lanes).to(self.device)
        self._ring[:, rows] = torch.from_numpy(frames).to(self.device)
        self._actions[rows] = 0
        # The network empties the memory and leaves out the action before.
        self._starts[rows] = True

    @torch.no_grad()
    def decide(self, lanes: NDArray[np.int64]) -> Decisions:
        """One decision for each of these lanes; their memory moves on."""
        rows = torch.from_numpy(lanes).to(self.device)
        parts = torch.split(rows, self._batch)
        run = map if self._workers is None else self._workers.map
        logits, values = zip(*run(self._act, parts), strict=True)
        return Decisions(torch.cat(logits).cpu().numpy(), torch.cat(values).cpu().numpy())

    def stack(self, lane: int) -> NDArray[np.uint8]:
        """What the network sees of a lane, oldest frame first."""
        return self._stacks(torch.tensor([lane], device=self.device))[0].cpu().numpy()

    def observe(
        self, lanes: NDArray[np.int64], frames: NDArray[np.uint8], actions: NDArray[np.int64]
    ) -> None:
        """Records the results of the actions in these lanes. The others have ended and stay as
        they are."""
        rows = torch.from_numpy(lanes).to(self.device)
        self._newest = (self._newest + 1) % len(self._ring)
        self._ring[self._newest].index_copy_(0, rows, torch.from_numpy(frames).to(self.device))
        self._actions[rows] = torch.from_numpy(actions).to(self.device)
        self._starts[rows] = False

    def _stacks(self, rows: Tensor) -> Tensor:
        depth = len(self._ring)
        order = [(self._newest + 1 + place) % depth for place in range(depth)]
        frames = [self._ring[place].index_select(0, rows) for place in order]
        # Channels last in memory, which the encoder needs on a CPU: it saves a sixth of the time.
        return torch.stack(frames, -1).permute(0, 3, 1, 2)

    @torch.no_grad()
    def _act(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        return decide_lanes(
            self.agent, rows, self._stacks, self._actions, self._state, self._starts
        )


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers(count: int) -> ThreadPoolExecutor:
    """Threads that each compute alone."""
    ready = Barrier(count + 1)

    def begin() -> None:
        torch.set_num_threads(1)
        ready.wait()

    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(count, thread_name_prefix="policy", initializer=begin)
    # While they wait for each other none is idle, so that each of these starts one more.
    for _ in range(count):
        pool.submit(int)
    ready.wait()
    # The setting is each thread's own, but the last one made is what new threads start with.
    torch.set_num_threads(threads)
    return pool
