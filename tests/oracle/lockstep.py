"""Our console and FCEUmm side by side: every frame runs in both and must end alike.

RAM must be equal in every byte after every frame. Pictures must be equal in every pixel, with two
exceptions, both in what FCEUmm shows while the game shows nothing:

- **Warm-up.** For two frames after power-on or reset FCEUmm paints colour 0, whatever the palette.
- **Leftovers.** When the game switches the picture on in the middle of a line (after loading an
  area took longer than the vertical blank), FCEUmm's tile pipeline still holds the last two tiles
  of an earlier picture and shows them: up to 16 pixels of that line, for one frame.
"""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from retro_reference import RetroConsole

from warpzone import _engine

_RANDOM = slice(0x07A7, 0x07AE)
_WARM_UP_FRAMES = 2
_LEFTOVER_PIXELS = 16


class DivergenceError(AssertionError):
    """The first frame that ended differently."""


def is_leftover(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> bool:
    """Whether two different pictures differ only by FCEUmm's stale tile pipeline."""
    lines, columns = np.nonzero(ours != theirs)
    return bool(
        lines.min() == lines.max() and columns.max() // 8 * 8 - columns.min() < _LEFTOVER_PIXELS
    )


class Lockstep:
    """A console (see `play_scripts.Console`) that is two consoles."""

    def __init__(
        self, rom: bytes, *, picture_every: int = 1, native: _engine.NativeProgram | None = None
    ) -> None:
        self._ours = _engine.Console(rom, native=native)
        self._theirs = RetroConsole(rom)
        self._picture_every = picture_every
        self._since_reset = 0
        self._ram = self._ours.ram()
        #: frames, lag frames, pictures compared, pictures with leftovers
        self.counts: Counter[str] = Counter()

    def frame(self, buttons: int, buttons2: int = 0) -> None:
        self._ours.frame(buttons, buttons2)
        self._theirs.frame(buttons, buttons2)
        before, self._ram = self._ram, self._ours.ram()
        self.counts["frames"] += 1
        self._since_reset += 1
        self.counts["lag_frames"] += bool((before[_RANDOM] == self._ram[_RANDOM]).all())
        self._compare_ram()
        due = self.counts["frames"] % self._picture_every == 0
        if due and self._since_reset > _WARM_UP_FRAMES:
            self._compare_picture()

    def reset(self) -> None:
        self._ours.reset()
        self._theirs.reset()
        self._since_reset = 0

    def ram(self) -> NDArray[np.uint8]:
        return self._ram

    def poke(self, address: int, value: int) -> None:
        self._ours.poke(address, value)
        self._theirs.poke(address, value)
        self._ram[address] = value

    def close(self) -> None:
        self._theirs.close()

    def __enter__(self) -> "Lockstep":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _compare_ram(self) -> None:
        theirs = self._theirs.ram()
        if np.array_equal(self._ram, theirs):
            return
        where = np.nonzero(self._ram != theirs)[0]
        shown = ", ".join(f"${at:04X} {self._ram[at]:02X}/{theirs[at]:02X}" for at in where[:8])
        frame = self.counts["frames"]
        raise DivergenceError(
            f"frame {frame}: {len(where)} bytes of RAM differ (ours/theirs): {shown}"
        )

    def _compare_picture(self) -> None:
        ours, theirs = self._ours.screen_indices(), self._theirs.screen_indices()
        self.counts["pictures"] += 1
        if np.array_equal(ours, theirs):
            return
        if not is_leftover(ours, theirs):
            lines, columns = np.nonzero(ours != theirs)
            raise DivergenceError(
                f"frame {self.counts['frames']}: {len(lines)} pixels differ, "
                f"lines {lines.min()}..{lines.max()}, columns {columns.min()}..{columns.max()}"
            )
        self.counts["leftovers"] += 1
