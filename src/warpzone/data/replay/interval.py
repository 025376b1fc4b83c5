"""How often to replay: always the same, or by the variance of recent TD errors."""

from __future__ import annotations

from typing import Any

from torch import Tensor

#: Weight of the newest variance in the mean of all so far.
RATE = 0.1
#: Variances this far from the mean change the interval.
MARGIN = 0.1
#: Saved for the mean before there is one; variances are not below 0.
UNKNOWN = -1.0


class Interval:
    """Updates from one replayed batch to the next.

    The variance of a batch's TD errors tells how much there is to learn from the replay. Above its
    running mean by MARGIN, the interval is halved; below it by MARGIN, doubled; always within
    `least` and `most`.
    """

    def __init__(self, least: int, most: int) -> None:
        """most: `least` or less keeps the interval at `least`."""
        self.least = least
        self.most = most
        self._value = least
        self._mean: float | None = None
        #: Looked at when the interval is next asked for: by then the device has worked it out.
        self._newest: Tensor | None = None

    @property
    def adaptive(self) -> bool:
        """Whether it changes."""
        return self.most > self.least

    @property
    def value(self) -> int:
        """The interval now."""
        if self._newest is not None:
            variance, self._newest = float(self._newest), None
            self._move(variance)
        return self._value

    def observe(self, errors: Tensor) -> None:
        """Takes the TD errors of a replayed batch, of any shape."""
        if self.adaptive:
            self._newest = errors.detach().float().var(correction=0)

    def _move(self, variance: float) -> None:
        if not 0.0 <= variance < float("inf"):
            # Not finite: the optimiser step was left out, and nothing was learned about the replay.
            return
        if self._mean is None:
            self._mean = variance
            return
        if variance > self._mean * (1.0 + MARGIN):
            self._value = max(self.least, self._value // 2)
        elif variance < self._mean * (1.0 - MARGIN):
            self._value = min(self.most, self._value * 2)
        self._mean += RATE * (variance - self._mean)

    def state_dict(self) -> dict[str, Any]:
        """The complete state."""
        # `value` looks at the newest batch, which moves the mean, too.
        return {"value": self.value, "mean": UNKNOWN if self._mean is None else self._mean}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`, within the present bounds."""
        self._newest = None
        self._value = min(max(int(state["value"]), self.least), max(self.least, self.most))
        mean = float(state["mean"])
        self._mean = None if mean == UNKNOWN else mean
