"""Lessons cut into blocks of some steps, so that an optimiser step sees parts of many.

What is shown is a few steps of hundreds. A block begins with what the network remembered there when
its lesson was last read, and with steps that only bring that up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from warpzone.model.agent import Agent
from warpzone.model.memory import State
from warpzone.teach.lessons import Lesson

#: Steps of a block that are learned from, and steps before them.
LEARNED = 64
WARM_UP = 32
#: Lessons that are read together.
READ = 64
#: What is shown in a block counts at least as much as this many steps, and a step at most as much
#: as so many: a detour of three steps decides an episode of three hundred.
DETOUR_WEIGHT = 8.0
STEP_WEIGHT = 4.0


class Read(NamedTuple):
    """A lesson, and what the network remembers at every `WARM_UP`-th step of it."""

    lesson: Lesson
    #: [posts, ...] each.
    memory: State
    #: bool [T]: steps that need not stay as they are; see `free_steps`.
    free: Tensor


class Block(NamedTuple):
    """A part of a lesson."""

    read: Read
    #: The first step that is learned from.
    first: int

    @property
    def begin(self) -> int:
        """The first step of all."""
        return max(0, self.first - WARM_UP)

    @property
    def starts(self) -> bool:
        """Whether its first step is that of an episode."""
        return self.begin == 0 and self.read.lesson.memory is None

    @property
    def previous(self) -> int:
        """The action before its first step."""
        lesson = self.read.lesson
        return int(lesson.actions[self.begin - 1]) if self.begin else lesson.previous

    @property
    def end(self) -> int:
        """The step behind the last one."""
        return min(self.read.lesson.length, self.first + LEARNED)


class Batch(NamedTuple):
    """Blocks side by side, [T, B, ...], padded to the longest."""

    encoded: Tensor
    #: Actions, and those before them; at an episode's start there is none, as `starts` says.
    actions: Tensor
    previous: Tensor
    starts: Tensor
    #: Steps that are shown, and those that are to stay as they are; what is only there to warm up
    #: the memory, or padded, is neither.
    shown: Tensor
    kept: Tensor
    #: How much shown steps count; 0 elsewhere.
    weights: Tensor
    logits: Tensor
    values: Tensor
    #: What is remembered before the first step.
    state: State


@torch.no_grad()
def read(agent: Agent, lessons: Sequence[Lesson]) -> list[Read]:
    """Has the agent see lessons as it is now; in their order."""
    found: list[Read | None] = [None] * len(lessons)
    free = free_steps(lessons)
    order = sorted(range(len(lessons)), key=lambda index: lessons[index].length)
    for first in range(0, len(order), READ):
        part = order[first : first + READ]
        for index, memory in zip(part, _posts(agent, [lessons[i] for i in part]), strict=True):
            found[index] = Read(lessons[index], memory, free[index])
    return [one for one in found if one is not None]


def free_steps(lessons: Sequence[Lesson]) -> list[Tensor]:
    """Steps at which another lesson shows something for the very same pictures, for each lesson.
    What the agent did there cannot be both kept and changed; it is changed, and if that is worse
    for one of them, the next round has a lesson for it."""
    shown: dict[int, set[bytes]] = {}
    for lesson in lessons:
        rows = lesson.encoded[lesson.shown].numpy()
        shown.setdefault(lesson.stage, set()).update(row.tobytes() for row in rows)
    free = []
    for lesson in lessons:
        same = torch.zeros_like(lesson.shown)
        if taken := shown[lesson.stage]:
            rows = lesson.encoded.numpy()
            same = torch.tensor([row.tobytes() in taken for row in rows])
        free.append(same & ~lesson.shown)
    return free


def _posts(agent: Agent, lessons: Sequence[Lesson]) -> list[State]:
    encoded = _side_by_side([lesson.encoded for lesson in lessons])
    actions = _side_by_side([lesson.actions for lesson in lessons])
    previous = torch.cat((torch.tensor([[one.previous for one in lessons]]), actions[:-1]))
    starts = torch.zeros_like(actions, dtype=torch.bool)
    starts[0] = torch.tensor([lesson.memory is None for lesson in lessons])
    state = agent.initial_state(len(lessons))
    for lane, lesson in enumerate(lessons):
        for remembered, kept in zip(state, lesson.memory or (), strict=False):
            remembered[lane] = kept
    posts = [state]
    for first in range(0, len(actions) - WARM_UP, WARM_UP):
        part = slice(first, first + WARM_UP)
        output = agent.forward_on(encoded[part].float(), previous[part], state, starts[part])
        state = output.state
        posts.append(state)
    together = [torch.stack(parts) for parts in zip(*posts, strict=True)]
    return [
        tuple(part[: -(-lesson.length // WARM_UP), lane].clone() for part in together)
        for lane, lesson in enumerate(lessons)
    ]


def blocks(reads: Sequence[Read]) -> tuple[list[Block], list[Block]]:
    """All blocks: those in which something is shown, and the others."""
    shown: list[Block] = []
    kept: list[Block] = []
    for one in reads:
        for first in range(0, one.lesson.length, LEARNED):
            there = bool(one.lesson.shown[first : first + LEARNED].any())
            (shown if there else kept).append(Block(one, first))
    return shown, kept


def make_batch(parts: Sequence[Block]) -> Batch:
    """Blocks as the network takes them."""

    def column(name: str) -> Tensor:
        """What lessons have at the blocks' steps."""
        return _side_by_side(
            [getattr(block.read.lesson, name)[block.begin : block.end] for block in parts]
        )

    actions = column("actions")
    learned = _side_by_side(
        [torch.arange(block.begin, block.end) >= block.first for block in parts]
    )
    shown = column("shown") & learned
    free = _side_by_side([block.read.free[block.begin : block.end] for block in parts])
    starts = torch.zeros_like(shown)
    starts[0] = torch.tensor([block.starts for block in parts])
    before = torch.tensor([block.previous for block in parts])
    each = (DETOUR_WEIGHT / shown.sum(0).clamp(min=1)).clamp(1.0, STEP_WEIGHT)
    posts = [block.begin // WARM_UP for block in parts]
    return Batch(
        encoded=column("encoded").float(),
        actions=actions,
        previous=torch.cat((before[None], actions[:-1])),
        starts=starts,
        shown=shown,
        kept=learned & ~shown & ~free,
        weights=shown * each,
        logits=column("logits").float(),
        values=column("values").float(),
        state=tuple(
            torch.stack([part[post] for part, post in zip(memories, posts, strict=True)])
            for memories in zip(*(block.read.memory for block in parts), strict=True)
        ),
    )


def _side_by_side(parts: Sequence[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(parts))
