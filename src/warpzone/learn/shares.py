"""Which parts of a minibatch a rank learns from: those of its own lanes."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from warpzone.collect.ranks import Ranks
from warpzone.config import TrainConfig
from warpzone.learn.augment import Change


class Share(NamedTuple):
    """A rank's parts of a minibatch; there may be none."""

    #: Their indices among the parts of this rank's rollout.
    parts: Tensor
    #: Their places in the minibatch; None if the minibatch is this rank's alone.
    places: Tensor | None

    def of(self, change: Change | None) -> Change | None:
        """This rank's part of what was drawn for the minibatch."""
        if change is None or self.places is None:
            return change
        shifts, factor = change
        down_right = None if shifts is None else (shifts[0][self.places], shifts[1][self.places])
        return Change(down_right, None if factor is None else factor[self.places])


class Shares:
    """Minibatches of a run, dealt to ranks in one of two ways.

    Exact: the order is drawn for all lanes of the run, as one process draws it, and a rank takes
    the parts that are its own. How many these are differs from minibatch to minibatch.

    Even: all ranks draw an order of their own parts, and take equally many of them. Sizes never
    change, which recorded steps need.
    """

    def __init__(self, config: TrainConfig, ranks: Ranks, *, even: bool) -> None:
        self.even = even
        self._ranks = ranks.size
        self._lanes = ranks.lanes(config.num_envs)
        self._all = config.num_envs
        self._whole_lanes = config.whole_lanes

    def total(self, own: int) -> int:
        """How many parts an order is drawn of, if a rank has so many."""
        return own if self.even else own * self._ranks

    def piece(self, parts: int) -> int:
        """How many parts of an order make a minibatch, if so many of all ranks do."""
        return parts // self._ranks if self.even else parts

    def of(self, minibatch: Tensor) -> Share:
        """This rank's share of a minibatch of an order."""
        if self.even:
            return Share(minibatch, None)
        lane = minibatch if self._whole_lanes else minibatch % self._all
        places = torch.nonzero((lane >= self._lanes.start) & (lane < self._lanes.stop)).squeeze(1)
        own = lane[places] - self._lanes.start
        if not self._whole_lanes:
            own = own + minibatch[places] // self._all * (self._lanes.stop - self._lanes.start)
        return Share(own, places)


class Replayed:
    """Replayed lanes of all ranks, each of which a rank has or has not."""

    even = False

    def __init__(self, own: Tensor) -> None:
        """own: bool, which of them are this rank's."""
        self._own = own
        self._parts = own.cumsum(0) - 1

    def of(self, minibatch: Tensor) -> Share:
        """This rank's share of a minibatch of these lanes."""
        places = torch.nonzero(self._own[minibatch]).squeeze(1)
        return Share(self._parts[minibatch[places]], places)
