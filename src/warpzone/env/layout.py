"""The axes and numbers of observations, as the libraries that take them want them.

The engine writes `[stack, height, width]`, with a last axis of 3 in colour, as bytes. Everything
else is made of that here.
"""

import sys
from dataclasses import dataclass
from typing import cast

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_COLOUR_AXES = 4
_COLOURS = 3
#: What OpenCV's INTER_AREA, which `ResizeObservation` uses, takes when it shrinks.
_MOST_CHANNELS = 4


class PicturesBox(spaces.Box):
    """A box that Gymnasium's wrappers for single pictures refuse with a sentence.

    `ResizeObservation` takes any box of two or three axes for a picture, `GrayscaleObservation` any
    whose last axis has three places; both would change the stack instead. Gymnasium has no way to
    tell a wrapper so, therefore the shape is withheld from their constructors. To everybody else
    this is a box like any other.
    """

    def __init__(
        self, shape: tuple[int, ...], high: float, dtype: str, unfit: dict[str, str]
    ) -> None:
        #: The constructors that may not have the shape, and what to do instead.
        self._unfit = unfit
        super().__init__(0, high, shape, np.dtype(dtype).type)

    @property
    def shape(self) -> tuple[int, ...]:
        """As `Box.shape`; ValueError for a wrapper that would mistake it."""
        reader = sys._getframe(1)
        advice = self._unfit.get(reader.f_code.co_qualname)
        if advice and str(reader.f_globals.get("__name__")).startswith("gymnasium.wrappers."):
            raise ValueError(f"{advice}; observations here have the shape {self._shape}")
        return self._shape


@dataclass(frozen=True)
class Layout:
    """What becomes of batches `[lanes, *engine_shape]`."""

    #: `stack`, `picture`, `channels_last` or `channels_first`; `Options.layout` says what they are.
    name: str
    #: `uint8` or `float32`.
    dtype: str
    engine_shape: tuple[int, ...]
    #: `Options.planar`, in colour: three pictures one below the other.
    planar: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return self._arrange(np.empty((1, *self.engine_shape), np.uint8)).shape[1:]

    def space(self) -> "spaces.Space[Bytes]":
        """The space of one observation."""
        high = 1.0 if self.dtype == "float32" else 255
        return cast("spaces.Space[Bytes]", PicturesBox(self.shape, high, self.dtype, self._unfit()))

    def _unfit(self) -> dict[str, str]:
        """The constructors of wrappers that would take these observations for others."""
        unfit = {}
        picture = self.name in {"picture", "channels_last"} and not self.planar
        if not picture or self.shape[2:] > (_MOST_CHANNELS,):
            unfit["ResizeObservation.__init__"] = (
                "ResizeObservation takes the first two axes for height and width, and at most "
                f"{_MOST_CHANNELS} channels: give frame_stack=1, layout='picture' or "
                "layout='channels_last', or size=(height, width) instead of the wrapper"
            )
        colour = len(self.engine_shape) == _COLOUR_AXES
        if not (picture and colour and self.shape[2:] == (_COLOURS,)):
            unfit["GrayscaleObservation.__init__"] = (
                "GrayscaleObservation takes the last axis for red, green and blue: give "
                "gray=False, frame_stack=1, layout='picture', or leave it out (gray=True)"
            )
        return unfit

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
