"""What the scaling model is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Network:
    """What a machine gets through its network, and the time of the smallest message."""

    bandwidth: float
    latency: float


#: Assumed, not measured: 10 and 100 Gbit/s Ethernet, and 400 Gbit/s for each GPU at half its rate.
SLOW, MIDDLE, FAST = Network(1.25e9, 1e-4), Network(12.5e9, 5e-5), Network(25e9, 5e-5)


@dataclass(frozen=True)
class Parts:
    """Steps/s of each part alone."""

    engine: float
    #: Threads that the engine had.
    threads: int
    inference: float
    learner: float
    #: Optimiser steps of an update, each of which exchanges gradients.
    optimiser_steps: int = 0


@dataclass(frozen=True)
class Predicted:
    """Steps/s, and what limits them."""

    rate: float
    limit: str


@dataclass(frozen=True)
class Point:
    """A measurement beside its prediction."""

    group: str
    what: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1
