"""From a screen to an observation, pixel for pixel as the engine makes it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.backends.interface import Bytes
from warpzone.env.options import SCREEN_HEIGHT, SCREEN_WIDTH, STATUS_BAR_LINES, Options


class Picture:
    """Cuts, masks, turns gray and resizes."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.height, self.width = options.shape
        self.shape: tuple[int, ...] = (self.height, self.width)
        if not options.gray:
            rows = (3 * self.height, self.width)
            self.shape = rows if options.planar else (self.height, self.width, 3)

    def cut(self, screen: Bytes) -> Bytes:
        """What is left of the screen in full resolution; always a copy."""
        height, width = screen.shape[:2]
        # Options speak of the whole screen; an environment may show a smaller one.
        top, bottom = (line * height // SCREEN_HEIGHT for line in self._options.crop[:2])
        left, right = (column * width // SCREEN_WIDTH for column in self._options.crop[2:])
        window = screen[top : height - bottom, left : width - right]
        image = gray(window) if self._options.gray and window.ndim == 3 else window.copy()
        if self._options.mask_status_bar:
            image[: max(0, STATUS_BAR_LINES * height // SCREEN_HEIGHT - top)] = 0
        return image

    def resize(self, image: Bytes) -> Bytes:
        """The observation."""
        if image.ndim == 2:
            gray = self._plane(np.ascontiguousarray(image))
            if self._options.gray:
                return gray
            planes = [gray] * 3
        else:
            planes = [self._plane(np.ascontiguousarray(image[..., c])) for c in range(3)]
        return np.concatenate(planes) if self._options.planar else np.stack(planes, axis=-1)

    def _plane(self, plane: Bytes) -> Bytes:
        if plane.shape == (self.height, self.width):
            return plane
        if self._options.resize == "area":
            return _engine.resize_area(plane, self.height, self.width, self._options.simd)
        rows = _nearest(plane.shape[0], self.height)
        columns = _nearest(plane.shape[1], self.width)
        return plane[rows][:, columns]


def gray(screen: Bytes) -> Bytes:
    """The luma that OpenCV's RGB to gray conversion computes."""
    wide = screen.astype(np.uint32)
    luma = wide[..., 0] * 4899 + wide[..., 1] * 9617 + wide[..., 2] * 1868 + 8192
    return (luma >> 14).astype(np.uint8)


def _nearest(source: int, target: int) -> NDArray[np.int64]:
    # In floating point like OpenCV and the engine.
    scale = 1.0 / (target / source)
    return np.minimum((np.arange(target) * scale).astype(np.int64), source - 1)
