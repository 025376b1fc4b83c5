"""What the network has of each lane of an exploration: frames, memory, the action before."""

from __future__ import annotations

from types import TracebackType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone.eval.policy import CPU_BATCH, cores, workers
from warpzone.model.agent import Agent
from warpzone.model.memory import State
from warpzone.teach.places import Place


class Decisions(NamedTuple):
    """What the network makes of some lanes."""

    #: float16 [B, F].
    encoded: Tensor
    #: float32 [B, A]; kept in half precision.
    logits: Tensor
    #: float16 [B].
    values: Tensor


class Table:
    """Lanes that begin and go on at places. Decisions are those of an evaluation, to the bit:
    batches are as large, and each core computes its own."""

    def __init__(self, agent: Agent, lanes: int, height: int, width: int) -> None:
        self._agent = agent
        self._stacks = np.zeros((lanes, agent.spec.stack, height, width), np.uint8)
        self._memory: State = agent.initial_state(lanes, device="cpu")
        self._previous = torch.zeros(lanes, dtype=torch.int64)
        self._starts = torch.ones(lanes, dtype=torch.bool)
        self._workers = workers(cores())

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._workers.shutdown()

    def sit(self, lane: int, place: Place) -> None:
        """A lane goes on from a place."""
        self._stacks[lane] = np.stack(place.frames)
        self._previous[lane] = place.previous_action
        self._starts[lane] = place.memory is None
        for part, kept in zip(self._memory, place.memory or (), strict=False):
            part[lane] = kept

    def decide(self, lanes: NDArray[np.int64]) -> Decisions:
        """One decision for each of these lanes; their memory moves on."""
        parts = [lanes[first : first + CPU_BATCH] for first in range(0, len(lanes), CPU_BATCH)]
        encoded, logits, values = zip(*self._workers.map(self._act, parts), strict=True)
        return Decisions(torch.cat(encoded), torch.cat(logits), torch.cat(values))

    def land(self, lanes: NDArray[np.int64], frames: NDArray[np.uint8], actions: Tensor) -> None:
        """These lanes have taken a step."""
        rows = torch.from_numpy(lanes)
        self._stacks[lanes, :-1] = self._stacks[lanes, 1:]
        self._stacks[lanes, -1] = frames
        self._previous[rows] = actions
        self._starts[rows] = False

    def memory_of(self, lane: int) -> tuple[Tensor, ...]:
        """What is remembered in a lane."""
        return tuple(part[lane].clone() for part in self._memory)

    @torch.no_grad()
    def _act(self, lanes: NDArray[np.int64]) -> Decisions:
        count = len(lanes)
        filled = np.concatenate((lanes, lanes[:1].repeat(CPU_BATCH - count)))
        rows = torch.from_numpy(filled)
        # Channels last in memory, as in evaluations: another order may round differently.
        seen = np.ascontiguousarray(self._stacks[filled].transpose(0, 2, 3, 1))
        encoded = self._agent.encode(torch.from_numpy(seen).permute(0, 3, 1, 2))
        before = tuple(part[rows] for part in self._memory)
        output = self._agent.act_on(encoded, self._previous[rows], before, self._starts[rows])
        for part, new in zip(self._memory, output.state, strict=True):
            part[rows[:count]] = new[:count]
        return Decisions(
            encoded[:count].half(), output.logits[:count].float(), output.value[:count].half()
        )
