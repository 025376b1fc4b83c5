"""Teaches memory and heads what lessons show; the encoder stays as it is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from warpzone.algo.ema import Ema
from warpzone.model.agent import Agent
from warpzone.model.cpu import has_bfloat16
from warpzone.run.packing import pack, unpack
from warpzone.teach.blocks import Batch, Block, blocks, make_batch, read
from warpzone.teach.lessons import Lesson, missing

#: Blocks of an optimiser step in which something is shown, and others.
SHOWN_BLOCKS = 12
KEPT_BLOCKS = 52
#: Optimiser steps until the learning rate is reached.
WARM_UP = 100
#: Weight of values; they have only to stay what they were.
VALUE_WEIGHT = 0.02
LARGEST_GRADIENT = 0.5
#: Of the average that is evaluated and explored with: single optimiser steps turn episodes that
#: hang by a hair.
DECAY = 0.995


class Fit(NamedTuple):
    """Means over the steps of some optimiser steps."""

    #: What shown actions lack of leading the others by the margin, and how often they lead.
    lacking: float
    agreed: float
    #: KL(before || now) where nothing is shown.
    drift: float


class Losses(NamedTuple):
    """Sums over the steps of a batch; all 0-dim."""

    #: By the weights of the steps, and without them.
    taught: Tensor
    lacking: Tensor
    agreed: Tensor
    drift: Tensor
    value: Tensor


def losses(agent: Agent, batch: Batch) -> Losses:
    """What blocks say about an agent. Shown actions are to lead; elsewhere the policy is to stay
    what it was when it played."""
    output = agent.forward_on(batch.encoded, batch.previous, batch.state, batch.starts)
    output = output._replace(logits=output.logits.float(), value=output.value.float())
    now = torch.log_softmax(output.logits, -1)
    before = torch.log_softmax(batch.logits, -1)
    drift = (before.exp() * (before - now)).sum(-1)
    lacking = missing(output.logits, batch.actions)
    leading = output.logits.argmax(-1) == batch.actions
    return Losses(
        taught=(lacking * batch.weights).sum(),
        lacking=(lacking * batch.shown).sum(),
        agreed=(leading & batch.shown).sum(),
        drift=(drift * batch.kept).sum(),
        value=((output.value - batch.values).square() * batch.kept).sum(),
    )


class Fitter:
    """Fits one agent, for as many rounds as there are: what the optimiser has learned about its
    steps, and the average of the weights, go on."""

    def __init__(
        self, agent: Agent, *, learning_rate: float, shown_weight: float, seed: int
    ) -> None:
        self._agent = agent
        self._rate, self._shown_weight = learning_rate, shown_weight
        self._taught = [
            parameter
            for name, parameter in agent.named_parameters()
            if not name.startswith("encoder.")
        ]
        self._optimizer = torch.optim.Adam(self._taught, lr=learning_rate)
        self._average = Ema(agent, DECAY)
        self._random = np.random.default_rng(seed)
        self._done = 0
        self._fast = torch.autocast("cpu", torch.bfloat16, enabled=has_bfloat16())

    def fit(
        self,
        lessons: Sequence[Lesson],
        weights: Sequence[float],
        steps: int,
        *,
        each_step: Callable[[], None] = lambda: None,
    ) -> Fit:
        """Optimiser steps with blocks of these lessons, drawn by their weights; a stage counts by
        the root of its blocks. each_step: called often; an exception ends the fitting."""
        reads = read(self._agent, lessons)
        by_read = {id(one): weight for one, weight in zip(reads, weights, strict=True)}
        shown, kept = ((part, _chances(part, by_read)) for part in blocks(reads))
        sums, counts = torch.zeros(3), torch.zeros(2)
        for _ in range(steps):
            batch = make_batch(self._draw(*shown, SHOWN_BLOCKS) + self._draw(*kept, KEPT_BLOCKS))
            found = self._step(batch)
            sums += torch.stack([found.lacking, found.agreed, found.drift]).detach()
            counts += torch.stack([batch.shown.sum(), batch.kept.sum()])
            each_step()
        there, elsewhere = counts.clamp(min=1.0).tolist()
        lacking, agreed, drift = sums.tolist()
        return Fit(lacking / there, agreed / there, drift / elsewhere)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The agent has the average of its weights meanwhile, rounded as a file of agents keeps
        them: rounding afterwards would turn episodes that hang by a hair."""
        now = {name: value.clone() for name, value in self._agent.state_dict().items()}
        self._average.copy_to(self._agent)
        self._agent.load_state_dict(unpack(pack(self._agent.state_dict())))
        try:
            yield
        finally:
            self._agent.load_state_dict(now)

    def _draw(self, part: Sequence[Block], chances: NDArray[np.float64], most: int) -> list[Block]:
        if len(part) <= most:
            return list(part)
        chosen = self._random.choice(len(part), most, replace=False, p=chances)
        return [part[index] for index in chosen]

    def _step(self, batch: Batch) -> Losses:
        self._done += 1
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate * min(1.0, self._done / WARM_UP)
        self._optimizer.zero_grad()
        steps = batch.shown.sum() + batch.kept.sum()
        with self._fast:
            found = losses(self._agent, batch)
        loss = self._shown_weight * found.taught + found.drift + VALUE_WEIGHT * found.value
        torch.autograd.backward(loss / steps, inputs=self._taught)
        nn.utils.clip_grad_norm_(self._taught, LARGEST_GRADIENT)
        self._optimizer.step()
        self._average.update(self._agent)
        return found


def _chances(part: Sequence[Block], weights: Mapping[int, float]) -> NDArray[np.float64]:
    """How likely each block is drawn: by the weight of its lesson, and less the more blocks its
    stage has."""
    counts = Counter(block.read.lesson.stage for block in part)
    each: NDArray[np.float64] = np.array(
        [weights[id(block.read)] / math.sqrt(counts[block.read.lesson.stage]) for block in part]
    )
    return each / max(float(each.sum()), 1e-12)
