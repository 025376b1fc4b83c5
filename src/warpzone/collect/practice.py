"""The places of one way, how attempts from there end, and which of them teach most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone.collect.search import MAP, Way
from warpzone.env.infos import COLUMN

#: Steps between two places, and those before a place that are shown, in turn. Of one length, the
#: policy's memory would tell what is shown from what it plays itself by the time since the start.
STRIDE = 4
SHOWN = (4, 16, 64, 8, 32)
#: Attempts are forgotten at this rate, because the policy changes; a place also looks at the
#: attempts of so many neighbours on either side.
DECAY = 0.97
NEIGHBOURS = 2
#: What is left of a clear after some twenty attempts.
FORGOTTEN = 0.5
#: What is shown is imitated while fewer attempts than this clear from where it begins.
TAUGHT = 0.2
#: Pixels of a cell. Attempts from other ways' places in a cell count as much as this many of a
#: place's own: with forty ways of a stage few places have some.
CELL = 64
PRIOR = 2.0
#: What lies so many places ahead is what an attempt has to lead to, the flag behind the last one.
AHEAD = slice(3, 8)
#: Weight that is left to a place where nothing or everything gets on.
LEAST_WEIGHT = 0.01


def shown_from(index: int) -> int:
    """The step of the way at which an episode from this place begins; place number i is
    (i + 1) * STRIDE steps after the start."""
    return max(0, (index + 1) * STRIDE - SHOWN[index % len(SHOWN)])


def spread(count: int) -> list[int]:
    """The numbers below `count`, each far from those before it: the bits of what counts them are
    read backwards (van der Corput's order)."""
    bits = max(1, (count - 1).bit_length())
    backwards = (int(f"{index:0{bits}b}"[::-1], 2) for index in range(1 << bits))
    return [number for number in backwards if number < count]


class Spot(NamedTuple):
    """A place of a way: a lane before it, the buttons that lead there, which fill frame stack and
    memory, and the cell of the stage's maps that it is in."""

    state: bytes
    buttons: bytes
    cell: tuple[int, ...] = ()


@dataclass
class Practice:
    """The places of one way, and how attempts from there end."""

    way: Way
    first: int
    places: list[Spot] = field(repr=False)
    attempts: NDArray[np.float64]
    clears: NDArray[np.float64]
    #: What attempts on other ways say about each place; one half where nobody has tried.
    prior: NDArray[np.float64] = field(init=False, repr=False)
    #: Where what is shown of each place begins: so many places and the door are before it.
    begin: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.prior = np.full(len(self.attempts), 0.5)
        # Place number i is (i + 1) * STRIDE steps after the door.
        begin = [shown_from(index) // STRIDE for index in range(len(self.attempts))]
        self.begin = np.array(begin, np.int64)

    def count(self, number: int, cleared: bool) -> None:
        """An episode that began at a place has ended."""
        index = number - self.first
        self.attempts[index] = DECAY * self.attempts[index] + 1.0
        self.clears[index] = DECAY * self.clears[index] + cleared

    def chances(self) -> NDArray[np.float64]:
        """How likely an attempt from each place clears."""
        window = np.ones(2 * NEIGHBOURS + 1)
        size = len(self.attempts)
        attempts = np.convolve(self.attempts, window)[NEIGHBOURS : NEIGHBOURS + size]
        clears = np.convolve(self.clears, window)[NEIGHBOURS : NEIGHBOURS + size]
        return (clears + PRIOR * self.prior) / (attempts + PRIOR)

    def weights(self, door: float) -> NDArray[np.float64]:
        """Places teach most where half of the attempts get as far as those that begin a little
        ahead, and behind a fork: where attempts get on, what leads there is imitated, and where
        that begins they do not. Clears alone say too little: before a hard end that half of the
        attempts survive, they are a half from everywhere, and practice stays there. door: see
        `taught`."""
        chances = self.chances()
        flags = np.concatenate([chances, np.ones(AHEAD.stop)])
        windows = np.lib.stride_tricks.sliding_window_view(flags, AHEAD.stop)
        ahead = windows[: len(chances), AHEAD].mean(axis=1)
        share = np.minimum(1.0, chances / ahead)
        before, own = self._around(door)
        fork = np.where(before < TAUGHT, np.clip((own - before) / ahead, 0.0, 1.0), 0.0)
        # Where nothing clears ahead either, shares say nothing.
        known = np.minimum(1.0, ahead / TAUGHT) ** 2
        weights: NDArray[np.float64] = np.maximum(
            LEAST_WEIGHT, known * np.maximum((4.0 * share * (1.0 - share)) ** 2, fork)
        )
        return weights

    def taught(self, door: float) -> NDArray[np.bool_]:
        """Of each place, whether the policy imitates what leads there. door: the clear rate of
        episodes from the stage's start, where the first of what is shown begins. It is not that of
        the first place: the policy's memory tells episodes that were shown something from others,
        so that it may clear from every place and still take its own wrong turn from the door."""
        taught: NDArray[np.bool_] = self._around(door)[0] < TAUGHT
        return taught

    def _around(self, door: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How likely attempts clear from where what is shown of each place begins, and from the
        place itself. Not of neighbours: a fork lies between two places."""
        chances = (self.clears + PRIOR * self.prior) / (self.attempts + PRIOR)
        return np.concatenate([[door], chances])[self.begin], chances

    @property
    def mastered(self) -> float:
        """The share of the way, counted from its end, from which most attempts clear."""
        poor = np.flatnonzero((self.chances() < 0.5) | (self.attempts < 1.0))
        return 1.0 - (poor[-1] + 1) / len(self.attempts) if len(poor) else 1.0

    @property
    def reached(self) -> float:
        """The share of the way, counted from its end, from which some attempts clear. Where the end
        is hard, most fail from everywhere, and practice gets nearer to the start all the same."""
        some = np.flatnonzero(self.clears > FORGOTTEN)
        return 1.0 - some[0] / len(self.clears) if len(some) else 0.0


def compare(practices: Mapping[int, Practice]) -> None:
    """Tells each way what attempts on the others have come to. practices: by any number."""
    numbers: dict[tuple[int, ...], int] = {}
    cells: dict[int, NDArray[np.int64]] = {}
    for key, one in practices.items():
        names = ((one.way.stage, *spot.cell) for spot in one.places)
        cells[key] = np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)

    def sums(key: int) -> NDArray[np.float64]:
        counts = practices[key].attempts, practices[key].clears
        return np.stack([np.bincount(cells[key], count, len(numbers)) for count in counts])

    own = {key: sums(key) for key in practices}
    total = sum(own.values(), np.zeros((2, len(numbers))))
    for key, one in practices.items():
        attempts, clears = (total - own[key])[:, cells[key]]
        one.prior = (clears + 1.0) / (attempts + 2.0)


def cell_of(info: NDArray[np.int32]) -> tuple[int, ...]:
    """Which map of the stage Mario is on, and whereabouts."""
    at = info[COLUMN["x_pos"]] // CELL, info[COLUMN["y_pos"]] // CELL
    return (*(int(info[COLUMN[name]]) for name in MAP), *map(int, at))
