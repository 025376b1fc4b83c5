"""Episodes that reach the flag, as the network behind its encoder sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from warpzone.model.memory import State

#: Logits by which a shown action is to lead the next one: enough that rounding, and what is learned
#: beside it, do not turn it.
MARGIN = 0.7
#: What a step of a lesson costs beside what its shown actions lack.
STEP_COST = 0.05


class Step(NamedTuple):
    """One step of an episode."""

    #: What the encoder made of the pictures; [F].
    encoded: NDArray[np.float16]
    action: int
    #: Whether a trial chose another action than the agent would have.
    shown: bool
    #: What the agent that played thought; [A].
    logits: NDArray[np.float16]
    value: float


class Lesson(NamedTuple):
    """An episode from the door to the flag, or a game's part of a stage; the first dimension of all
    tensors is the step."""

    stage: int
    start_delay: int
    #: float16 [T, F]. The encoder is not taught, so that pictures need not be kept.
    encoded: Tensor
    #: int64 [T].
    actions: Tensor
    #: bool [T].
    shown: Tensor
    #: float16 [T, A] and [T].
    logits: Tensor
    values: Tensor
    #: What the agent remembered before the first step, for one lane, and its action before that;
    #: None where an episode begins.
    memory: State | None = None
    previous: int = 0

    @property
    def length(self) -> int:
        """Its steps."""
        return len(self.actions)

    @property
    def alone(self) -> bool:
        """Whether the agent played all of it."""
        return not bool(self.shown.any())


def make_lesson(
    stage: int,
    start_delay: int,
    steps: Sequence[Step],
    memory: State | None = None,
    previous: int = 0,
) -> Lesson:
    """The lesson of an episode, or of a part of one."""
    return Lesson(
        stage,
        start_delay,
        torch.from_numpy(np.stack([step.encoded for step in steps])),
        torch.tensor([step.action for step in steps]),
        torch.tensor([step.shown for step in steps]),
        torch.from_numpy(np.stack([step.logits for step in steps])),
        torch.tensor([step.value for step in steps], dtype=torch.float16),
        memory,
        previous,
    )


def missing(logits: Tensor, actions: Tensor) -> Tensor:
    """What these actions lack of leading all others by the margin. logits: [..., A]; actions and
    the result: [...]."""
    chosen = logits.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    taken = F.one_hot(actions, logits.shape[-1]).bool()
    others = logits.masked_fill(taken, float("-inf")).amax(-1)
    return F.relu(MARGIN - (chosen - others))


def cost(lesson: Lesson) -> float:
    """How far the agent that played is from what is shown to it, and a little for each step: of two
    alike the one that does not stand about is the better one."""
    lacking = missing(lesson.logits.float(), lesson.actions)
    return float((lacking * lesson.shown).sum()) + STEP_COST * lesson.length
