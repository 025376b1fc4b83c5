"""What a search makes best, computed from evaluations: argmax, every start delay, one life."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from warpzone.config import ConfigError, TrainConfig

#: Name -> what it is, in words.
OBJECTIVES = {
    "clears": "start delays cleared at equal steps",
    "steps": "steps until so many start delays are cleared",
    "distance": "mean of the furthest x at equal steps, argmax and sampled",
}
#: A point of an evaluation: the step, and the rows of its episodes.
Point = tuple[int, Sequence[dict[str, Any]]]


@dataclass(frozen=True)
class Objective:
    """The value of a run so far. `steps` is made small, the others large."""

    kind: str
    #: Start delays that `steps` counts to.
    clears: int
    max_steps: int

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        return "minimize" if self.kind == "steps" else "maximize"

    def require(self, base: TrainConfig) -> None:
        """ConfigError if the base configuration does not measure it."""
        if self.kind != "steps":
            if self.clears:
                raise ConfigError(f"clears is about objective steps, not about {self.kind}")
            return
        if not 0 < self.clears <= base.most_clears:
            raise ConfigError(
                f"objective steps needs clears in 1..{base.most_clears}, and it is {self.clears}"
            )
        if not base.eval_interval:
            raise ConfigError("objective steps needs evaluations: set fixed.eval_interval")

    def prepared(self, base: TrainConfig) -> TrainConfig:
        """The base configuration as it ends trials: at equal steps, or once enough is cleared."""
        if self.kind == "steps":
            return base.replace(stop_at=0.0).replace(stop_at_clears=self.clears)
        return base.replace(stop_at=0.0)

    def value(self, points: Iterable[Point]) -> float | None:
        """The best value that evaluations show; None without any. Where `steps` has not got to its
        clears, it is more than `max_steps`, the more the further away it was."""
        best: float | None = None
        for step, rows in points:
            found = self._one(step, rows)
            better = min if self.direction == "minimize" else max
            best = found if best is None else better(best, found)
        return best

    def _one(self, step: int, rows: Sequence[dict[str, Any]]) -> float:
        if self.kind == "distance":
            return sum(float(row["furthest_x"]) for row in rows) / len(rows)
        cleared = sum(bool(row["cleared"]) for row in rows if row["policy"] == "argmax")
        if self.kind == "clears":
            return float(cleared)
        if cleared >= self.clears:
            return float(step)
        return self.max_steps * (2.0 - cleared / self.clears)

    def describe(self) -> str:
        """In words."""
        return OBJECTIVES[self.kind].replace("so many", str(self.clears))


def points_of(rows: Iterable[dict[str, Any]]) -> list[Point]:
    """The evaluations of a run, in the order of steps, from the rows of its file."""
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(int(row["global_step"]), []).append(row)
    return sorted(grouped.items())
