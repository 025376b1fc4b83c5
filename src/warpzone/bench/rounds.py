"""Interleaved measuring: every case gets a slice of every round, so drift hits all alike."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

#: Runs for about that many seconds and returns the amount of work.
Slice = Callable[[float], int]


@dataclass
class Case:
    """Something whose rate is measured."""

    name: str
    unit: str
    work: Slice
    about: dict[str, Any] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)
    #: The same for each second of CPU time: steadier on a machine that others use too.
    cpu_rates: list[float] = field(default_factory=list)

    def measure(self, seconds: float) -> None:
        """Adds the rate of one slice."""
        wall, cpu = time.perf_counter(), time.process_time()
        done = self.work(seconds)
        self.rates.append(done / (time.perf_counter() - wall))
        self.cpu_rates.append(done / max(time.process_time() - cpu, 1e-9))

    def summary(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": median(self.rates),
            "min": min(self.rates),
            "max": max(self.rates),
            "median_per_cpu_second": median(self.cpu_rates),
            "rates": self.rates,
            "cpu_rates": self.cpu_rates,
            **self.about,
        }


def interleave(
    cases: Sequence[Case], rounds: int, seconds: float, tell: Callable[[str], None]
) -> None:
    """Measures all cases `rounds` times, round-robin, after a short warm-up of each."""
    for case in cases:
        case.work(min(seconds, 0.05))
    for number in range(rounds):
        tell(f"round {number + 1} of {rounds}")
        for case in cases:
            case.measure(seconds)


def ratio(one: Case, other: Case) -> float:
    """How many times faster `one` is: the median of the ratios of each round."""
    return median(a / b for a, b in zip(one.rates, other.rates, strict=True))


def cpu_ratio(one: Case, other: Case) -> float:
    """The same of what a second of CPU time does; for cases of one thread."""
    return median(a / b for a, b in zip(one.cpu_rates, other.cpu_rates, strict=True))


def until(seconds: float, once: Callable[[], int]) -> int:
    """Repeats `once` for about that long and adds up its results."""
    end = time.perf_counter() + seconds
    done = once()
    while time.perf_counter() < end:
        done += once()
    return done
