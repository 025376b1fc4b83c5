"""Our console and FCEUmm side by side: every frame runs in both and must end alike. Several of
ours, each with another way of running the program, share one FCEUmm.

RAM must be equal in every byte after every frame. Pictures must be equal in every pixel, with two
exceptions, both in what FCEUmm shows while the game shows nothing:

- **Warm-up.** For two frames after power-on or reset FCEUmm paints colour 0, whatever the palette.
- **Leftovers.** When the game switches the picture on in the middle of a line (after loading an
  area took longer than the vertical blank), FCEUmm's tile pipeline still holds the last two tiles
  of an earlier picture and shows them: up to 16 pixels of that line, for one frame.
"""

from collections import Counter
from collections.abc import Sequence
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
    """A console (see `play_scripts.Console`) that is two consoles or more."""

    def __init__(
        self,
        rom: bytes,
        *,
        picture_every: int = 1,
        natives: Sequence[_engine.NativeProgram | None] = (None,),
    ) -> None:
        """natives: the code of each of our consoles; None is the interpreter."""
        self._ours = [_engine.Console(rom, native=native) for native in natives]
        self._codes = ["interpreter" if native is None else native.how for native in natives]
        self._theirs = RetroConsole(rom)
        self._picture_every = picture_every
        self._since_reset = 0
        self._ram = self._ours[0].ram()
        #: frames, lag frames, pictures compared, pictures with leftovers
        self.counts: Counter[str] = Counter()

    def frame(self, buttons: int, buttons2: int = 0) -> None:
        for ours in self._ours:
            ours.frame(buttons, buttons2)
        self._theirs.frame(buttons, buttons2)
        before, self._ram = self._ram, self._ours[0].ram()
        self.counts["frames"] += 1
        self._since_reset += 1
        self.counts["lag_frames"] += bool((before[_RANDOM] == self._ram[_RANDOM]).all())
        self._compare_ram()
        due = self.counts["frames"] % self._picture_every == 0
        if due and self._since_reset > _WARM_UP_FRAMES:
            self._compare_picture()

    def reset(self) -> None:
        for ours in self._ours:
            ours.reset()
        self._theirs.reset()
        self._since_reset = 0

    def ram(self) -> NDArray[np.uint8]:
        return self._ram

    def poke(self, address: int, value: int) -> None:
        for ours in self._ours:
            ours.poke(address, value)
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
        for code, console in zip(self._codes, self._ours, strict=True):
            ours = console.ram()
            if np.array_equal(ours, theirs):
                continue
            where = np.nonzero(ours != theirs)[0]
            shown = ", ".join(f"${at:04X} {ours[at]:02X}/{theirs[at]:02X}" for at in where[:8])
            raise DivergenceError(
                f"frame {self.counts['frames']}: {len(where)} bytes of RAM differ "
                f"({code}/theirs): {shown}"
            )

    def _compare_picture(self) -> None:
        theirs = self._theirs.screen_indices()
        self.counts["pictures"] += 1
        leftover = False
        for code, console in zip(self._codes, self._ours, strict=True):
            ours = console.screen_indices()
            if np.array_equal(ours, theirs):
                continue
            if not is_leftover(ours, theirs):
                lines, columns = np.nonzero(ours != theirs)
                raise DivergenceError(
                    f"frame {self.counts['frames']}: {len(lines)} pixels differ ({code}), "
                    f"lines {lines.min()}..{lines.max()}, columns {columns.min()}..{columns.max()}"
                )
            leftover = True
        self.counts["leftovers"] += leftover
