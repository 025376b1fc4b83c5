"""What Gymnasium's `AtariPreprocessing` asks of an Atari game: its lives and its screen.

The wrapper reads the screen itself instead of the observation, into arrays of the observation's
height and width, so the observation must be the whole picture.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine

if TYPE_CHECKING:
    from warpzone.env.vector import MarioVectorEnv

Bytes = NDArray[np.uint8]


class AtariView:
    """The only lane of an environment, under the names of the Arcade Learning Environment."""

    def __init__(self, lanes: "MarioVectorEnv") -> None:
        shape = lanes.single_observation_space.shape or ()
        wanted = lanes.options.obs == "pixels" and lanes.options.layout == "picture"
        if not wanted or lanes.options.frame_skip != 1:
            raise ValueError(
                "AtariPreprocessing needs frame_skip=1, frame_stack=1 and layout='picture', because"
                f" it skips and shrinks itself; here frame_skip is {lanes.options.frame_skip} and "
                f"observations have the shape {shape}"
            )
        self._lanes = lanes
        height, width = shape[:2]
        self._gray = _engine.Screens(
            _engine.ObserveSpec(kind=_engine.ObserveKind.GRAY, height=height, width=width)
        )
        self._rgb = _engine.Screens(
            _engine.ObserveSpec(kind=_engine.ObserveKind.RGB, height=height, width=width)
        )

    def lives(self) -> int:
        """Lives left, the present one included; 0 when the game is over."""
        return (int(self._lanes.info(0)["life"]) + 1) % 256

    def getScreenGrayscale(self, out: Bytes) -> None:  # noqa: N802 - the emulator's name
        """Writes the last frame in gray."""
        out[...] = self._gray.observe(self._lanes.screen(0))

    def getScreenRGB(self, out: Bytes) -> None:  # noqa: N802 - the emulator's name
        """Writes the last frame in colour."""
        out[...] = self._rgb.observe(self._lanes.screen(0))
