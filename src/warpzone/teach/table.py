"""What the network has of each lane of an exploration: frames, memory, the action before."""

from __future__ import annotations

import copy
from functools import partial
from types import TracebackType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from warpzone.eval.policy import CPU_BATCH, cores, workers
from warpzone.model.agent import Agent
from warpzone.model.memory import State
from warpzone.teach.places import Place

#: Rough batches are filled up to a multiple of this: each size is a kernel to prepare, and smaller
#: ones are hardly faster.
ROUGH_STEP = 32


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
    batches are as large, and each core computes its own. Lanes that may be decided roughly have
    them computed in bfloat16, in half of the time."""

    def __init__(
        self, agent: Agent, lanes: int, height: int, width: int, *, rough: bool = False
    ) -> None:
        """rough: whether there are lanes that may be decided roughly."""
        self._agent = agent
        self._rough = copy.deepcopy(agent) if rough else agent
        for layer in self._rough.encoder.modules() if rough else ():
            # Converted once, not with every batch; norms and the like stay in single precision.
            if isinstance(layer, nn.Conv2d | nn.Linear):
                layer.bfloat16()
        self._stacks = np.zeros((lanes, agent.spec.stack, height, width), np.uint8)
        self._memory: State = agent.initial_state(lanes, device="cpu")
        self._previous = torch.zeros(lanes, dtype=torch.int64)
        self._starts = torch.ones(lanes, dtype=torch.bool)
        self._cores = cores()
        self._workers = workers(self._cores)

    def __len__(self) -> int:
        return len(self._stacks)

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

    def decide(self, lanes: NDArray[np.int64], rough: NDArray[np.bool_] | None = None) -> Decisions:
        """One decision for each of these lanes; their memory moves on. rough: those that may be
        decided roughly (none)."""
        rough = np.zeros(len(lanes), np.bool_) if rough is None else rough
        exact, quick = np.flatnonzero(~rough), np.flatnonzero(rough)
        batches = np.split(exact, range(CPU_BATCH, len(exact), CPU_BATCH))
        jobs = [partial(self._act, lanes[rows]) for rows in batches if len(rows)]
        shares = np.array_split(quick, self._cores if len(quick) > ROUGH_STEP else 1)
        jobs += [partial(self._act_roughly, lanes[rows]) for rows in shares if len(rows)]
        made = zip(*self._workers.map(lambda job: job(), jobs), strict=True)
        back = torch.from_numpy(np.argsort(np.concatenate((exact, quick))))
        return Decisions(*(torch.cat(parts)[back] for parts in made))

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

    def _act(self, lanes: NDArray[np.int64]) -> Decisions:
        return self._decide(self._agent, lanes, CPU_BATCH)

    def _act_roughly(self, lanes: NDArray[np.int64]) -> Decisions:
        with torch.autocast("cpu", torch.bfloat16):
            return self._decide(self._rough, lanes, -(-len(lanes) // ROUGH_STEP) * ROUGH_STEP)

    @torch.no_grad()
    def _decide(self, agent: Agent, lanes: NDArray[np.int64], batch: int) -> Decisions:
        count = len(lanes)
        filled = np.concatenate((lanes, lanes[:1].repeat(batch - count)))
        rows = torch.from_numpy(filled)
        # Channels last in memory, as in evaluations: another order may round differently.
        seen = np.ascontiguousarray(self._stacks[filled].transpose(0, 2, 3, 1))
        encoded = agent.encode(torch.from_numpy(seen).permute(0, 3, 1, 2))
        before = tuple(part[rows] for part in self._memory)
        output = agent.act_on(encoded, self._previous[rows], before, self._starts[rows])
        for part, new in zip(self._memory, output.state, strict=True):
            part[rows[:count]] = new[:count]
        return Decisions(
            encoded[:count].half(), output.logits[:count].float(), output.value[:count].half()
        )
