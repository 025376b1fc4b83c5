"""What a step saw, and what augmentation makes of it: one picture at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpzone.data.types import Rollout


@dataclass(frozen=True)
class Change:
    """A shift of a picture by whole pixels, edges repeated, and a factor on its brightness."""

    down: int
    right: int
    bright: np.float32
    #: Pictures one below the other, each moved by itself.
    colors: int = 1

    def __call__(self, pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """[frames, rows, columns]"""
        parts = np.split(pictures, self.colors, 1)
        return np.concatenate([self._changed(part) for part in parts], 1)

    def _changed(self, pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
        height, width = pictures.shape[1:]
        reach = max(abs(self.down), abs(self.right))
        wide = np.pad(pictures, ((0, 0), (reach, reach), (reach, reach)), mode="edge")
        top, left = reach + self.down, reach + self.right
        moved = wide[:, top : top + height, left : left + width]
        changed: NDArray[np.uint8] = np.round(np.clip(moved * self.bright, 0, 255)).astype(np.uint8)
        return changed


def observation(rollout: Rollout, t: int, lane: int) -> NDArray[np.uint8]:
    """The stack that step t saw, oldest frame first; before an episode's first frame there is
    that frame."""
    age, newest = int(rollout.age[t, lane]), t + rollout.stack - 1
    rows = [newest - min(back, age) for back in reversed(range(rollout.stack))]
    return np.stack([rollout.frames[row, lane].numpy() for row in rows])
