"""Which buttons a lane presses in a frame: the action's, the last ones (sticky), or a script's."""

from __future__ import annotations

from collections.abc import Sequence

from warpzone.env.backends.interface import Ints
from warpzone.env.backends.rng import Rng
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.env.script import parse_start


class Buttons:
    """The same rules, and the same draws, as in the engine's lanes."""

    def __init__(self, lanes: int, options: Options) -> None:
        self._sticky = options.sticky
        self._held = [0] * lanes
        #: What every episode starts with.
        self._script = parse_start(options.start_script) if options.start_script else b""
        #: What is left of each lane's script; None when its actions count.
        self._left: list[bytes | None] = [None] * lanes

    def set_script(self, masks: bytes) -> None:
        """For the episodes that begin from now on; empty is none."""
        self._script = masks

    def force(self, lanes: Sequence[int], masks: bytes) -> None:
        """From now on, whatever the actions are."""
        for lane in lanes:
            self._left[lane] = masks or None

    def begin(self, lane: int, info: Ints) -> None:
        """An episode begins."""
        self._held[lane] = 0
        self._left[lane] = self._script or None
        self._write(lane, info, False)

    def next(self, lane: int, wanted: int, rng: Rng) -> int:
        """The mask of the next frame."""
        left = self._left[lane]
        if left is None:
            if self._sticky == 0 or not rng.chance(self._sticky):
                self._held[lane] = wanted
        elif left:
            # A script that ends inside a step holds its last buttons to the end of it.
            self._held[lane], self._left[lane] = left[0], left[1:]
        return self._held[lane]

    def finish_step(self, lane: int, info: Ints) -> None:
        """Says in the info row what was pressed, and whether it was forced."""
        self._write(lane, info, self._left[lane] is not None)
        self._left[lane] = self._left[lane] or None

    def _write(self, lane: int, info: Ints, forced: bool) -> None:
        for name, value in (("forced", int(forced)), ("buttons", self._held[lane])):
            if name in COLUMN:
                info[lane, COLUMN[name]] = value
