"""The axes and numbers of observations, as the libraries that take them want them.

The engine writes `[stack, height, width]`, with a last axis of 3 in colour, as bytes. Everything
else is made of that here.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_COLOUR_AXES = 4


@dataclass(frozen=True)
class Layout:
    """What becomes of batches `[lanes, *engine_shape]`."""

    #: `stack`, `picture`, `channels_last` or `channels_first`; `Options.layout` says what they are.
    name: str
    #: `uint8` or `float32`.
    dtype: str
    engine_shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return self._arrange(np.empty((1, *self.engine_shape), np.uint8)).shape[1:]

    def space(self) -> "spaces.Space[Bytes]":
        """The space of one observation."""
        if self.dtype == "float32":
            return cast("spaces.Space[Bytes]", spaces.Box(0.0, 1.0, self.shape, np.float32))
        return cast("spaces.Space[Bytes]", spaces.Box(0, 255, self.shape, np.uint8))

    def __call__(self, batch: Bytes) -> Bytes:
        """The batch as it is shown to the caller: itself, a view of it or a copy. Typed as bytes,
        which it is unless `dtype` says otherwise."""
        shown = self._arrange(batch)
        if self.dtype == "float32":
            return cast("Bytes", np.divide(shown, 255, dtype=np.float32))
        return shown

    def _arrange(self, batch: Bytes) -> Bytes:
        colour = len(self.engine_shape) == _COLOUR_AXES
        if self.name == "picture":
            return batch[:, 0]
        if self.name == "channels_last":
            moved = np.moveaxis(batch, 1, 3)
        elif self.name == "channels_first" and colour:
            moved = np.moveaxis(batch, 4, 2)
        else:
            return batch
        if not colour:
            return np.ascontiguousarray(moved)
        lanes, stack, height, width, colours = batch.shape
        channels = stack * colours
        if self.name == "channels_last":
            return np.ascontiguousarray(moved).reshape(lanes, height, width, channels)
        return np.ascontiguousarray(moved).reshape(lanes, channels, height, width)
