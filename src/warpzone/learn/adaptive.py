"""Adaptive schedules: more exploration on a plateau, less while returns rise. Off by default."""

from __future__ import annotations

from collections import deque
from typing import Any

from warpzone.config.adaptive import AdaptiveConfig

#: Changes of the mean return below this share of the spread of returns are ignored.
TOLERANCE = 0.05
#: Smaller changes of the clear rate are ignored.
CLEAR_TOLERANCE = 0.01
#: Above this clear rate exploration is no longer needed, only precision.
CLEARED = 0.9


class Adaptive:
    """Two factors, on the entropy bonus and on the learning rate, beside their schedules. After
    every `adaptive_window` updates the second half of the window is compared with the first:

    - plateau: both factors grow by `adaptive_step`;
    - progress, or nearly every episode clears: both shrink by it;
    - decline: the learning rate shrinks, exploration stays.

    They stay inside their bounds, and after a change nothing moves for `adaptive_cooldown` updates.
    """

    def __init__(self, config: AdaptiveConfig) -> None:
        self.config = config
        self.entropy_scale = 1.0
        self.lr_scale = 1.0
        #: -1 decline, 0 too early to say, 1 plateau, 2 progress.
        self.state = 0
        self._wait = 0
        #: Mean return, its spread and the clear rate, update by update.
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=config.adaptive_window)

    def observe(self, summary: dict[str, float]) -> None:
        """Records the episode statistics of an update, before it is learned from."""
        if not self.config.adaptive or "avg_return" not in summary:
            return
        names = ("avg_return", "recent_return_std", "clear_rate")
        mean, spread, clear = (float(summary[name]) for name in names)
        self._seen.append((mean, spread, clear))
        self._wait = max(0, self._wait - 1)
        if len(self._seen) < self.config.adaptive_window:
            return
        self.state = self._judge()
        if self._wait == 0:
            self._move()

    def _judge(self) -> int:
        rows = list(self._seen)
        half = len(rows) // 2
        before, after = _means(rows[:half]), _means(rows[-half:])
        gained = after[0] - before[0]
        cleared = after[2] - before[2]
        margin = TOLERANCE * max(after[1], 1e-6)
        if after[2] >= CLEARED or gained > margin or cleared > CLEAR_TOLERANCE:
            return 2
        return -1 if gained < -margin else 1

    def _move(self) -> None:
        config, step = self.config, self.config.adaptive_step
        exponent = {1: 1, 2: -1, -1: -1}[self.state]
        rate = _within(
            self.lr_scale * step**exponent, config.adaptive_lr_min, config.adaptive_lr_max
        )
        entropy = self.entropy_scale
        if self.state > 0:
            entropy = _within(
                entropy * step**exponent, config.adaptive_entropy_min, config.adaptive_entropy_max
            )
        if (rate, entropy) != (self.lr_scale, self.entropy_scale):
            self.lr_scale, self.entropy_scale = rate, entropy
            self._wait = config.adaptive_cooldown

    def metrics(self) -> dict[str, float]:
        """Numbers for the metrics row; none while switched off."""
        if not self.config.adaptive:
            return {}
        return {
            "adaptive_entropy_scale": self.entropy_scale,
            "adaptive_lr_scale": self.lr_scale,
            "adaptive_state": float(self.state),
        }

    def state_dict(self) -> dict[str, Any]:
        """The complete state, as plain numbers."""
        return {
            "entropy_scale": self.entropy_scale,
            "lr_scale": self.lr_scale,
            "state": self.state,
            "wait": self._wait,
            "seen": [list(row) for row in self._seen],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores `state_dict`. Factors are clamped to the present bounds."""
        config = self.config
        self.entropy_scale = _within(
            float(state["entropy_scale"]), config.adaptive_entropy_min, config.adaptive_entropy_max
        )
        self.lr_scale = _within(
            float(state["lr_scale"]), config.adaptive_lr_min, config.adaptive_lr_max
        )
        self.state = int(state["state"])
        self._wait = int(state["wait"])
        self._seen.clear()
        for mean, spread, clear in state["seen"]:
            self._seen.append((float(mean), float(spread), float(clear)))


def _means(rows: list[tuple[float, float, float]]) -> tuple[float, ...]:
    return tuple(sum(column) / len(rows) for column in zip(*rows, strict=True))


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
