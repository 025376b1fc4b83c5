"""Numbers that change over a run, as pure functions of its progress in [0, 1]."""

from dataclasses import dataclass
from math import cos, isfinite, pi

KINDS = ("constant", "cosine")


@dataclass(frozen=True)
class Schedule:
    """From `start` to `end`, after rising to `start` during the warm-up.

    The warm-up is a share of the run, not a count: a short run warms up too, and no run is warm-up
    only.
    """

    start: float
    end: float = 0.0
    #: `constant` (ignores `end`) or `cosine`.
    kind: str = "constant"
    #: Share of the run in which the value rises to `start`.
    warmup: float = 0.0
    #: Share of the run for which a value is used. In a warm-up it is the one that is reached at the
    #: end of that share: at its beginning the first would be 0, and an update would teach nothing.
    stride: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"a schedule must be one of {', '.join(KINDS)}, not {self.kind!r}")
        if not (isfinite(self.start) and isfinite(self.end)):
            raise ValueError(f"a schedule needs finite ends, not {self.start} and {self.end}")
        if not 0.0 <= self.warmup < 1.0:
            raise ValueError(
                f"the warm-up is a share of the run in [0, 1), and {self.warmup} is not"
            )

    def __call__(self, progress: float) -> float:
        """The value at a share of the run; before 0 and after 1 it is that of the end."""
        progress = min(max(progress, 0.0), 1.0)
        if progress < self.warmup:
            return self.start * min(1.0, (progress + self.stride) / self.warmup)
        if self.kind == "constant":
            return self.start
        gone = 0.5 * (1.0 - cos(pi * (progress - self.warmup) / (1.0 - self.warmup)))
        return (1.0 - gone) * self.start + gone * self.end


@dataclass(frozen=True)
class Anneal:
    """Linear from `start` to `end`: the entropy bonus late in a run is what caps reliability."""

    start: float
    end: float = 0.0

    def __post_init__(self) -> None:
        if not (isfinite(self.start) and isfinite(self.end)):
            raise ValueError(f"an anneal needs finite ends, not {self.start} and {self.end}")

    def __call__(self, progress: float) -> float:
        """The value at a share of the run."""
        gone = min(max(progress, 0.0), 1.0)
        # Exact at both ends: an entropy bonus annealed to zero is zero, not 1e-19.
        return (1.0 - gone) * self.start + gone * self.end
