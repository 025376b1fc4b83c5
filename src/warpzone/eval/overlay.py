"""What is drawn around the game: the buttons, the value, the policy, and what the network sees."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageDraw, ImageFont

from warpzone.env.actions import BUTTONS
from warpzone.env.options import GRIDS
from warpzone.media.pictures import enlarge, ram_block

if TYPE_CHECKING:
    from warpzone.eval.performance import Shot

Image = NDArray[np.uint8]

PARTS = ("buttons", "value", "policy", "view")
#: Widths and heights are in pixels of the NES, times the scale.
PANEL = 112
PAPER = (22, 24, 29)
INK = (222, 226, 232)
FAINT = (92, 99, 112)
HOT = (255, 92, 80)
COOL = (98, 168, 255)
ENDS = {"flag": (90, 220, 120), "death": (255, 70, 60), "stuck": (255, 205, 60)}
#: Steps that the curve of the value goes back.
HISTORY = 96

#: Where each button is on the pad, in a box of 100 x 44.
_PAD = {
    "LEFT": (6, 18, 16, 28),
    "RIGHT": (26, 18, 36, 28),
    "UP": (16, 8, 26, 18),
    "DOWN": (16, 28, 26, 38),
    "SELECT": (42, 28, 50, 32),
    "START": (54, 28, 62, 32),
    "B": (68, 22, 80, 34),
    "A": (84, 22, 96, 34),
}


class Panel:
    """A panel to the right of the screen, redrawn for each decision."""

    def __init__(self, names: Sequence[str], parts: Sequence[str] = PARTS, scale: int = 3) -> None:
        self._names = tuple(names)
        self._parts = tuple(parts)
        self._scale = scale
        self._values: deque[float] = deque(maxlen=HISTORY)
        self._font = ImageFont.load_default(size=6.5 * scale)
        self._drawn: Image | None = None
        #: What it was drawn for. Kept, because the place of chances that are gone is used again.
        self._shown: Shot | None = None

    def compose(self, shot: Shot) -> Image:
        """The enlarged screen with the panel beside it."""
        screen = enlarge(shot.screen, self._scale)
        if shot.end:
            screen = framed(screen, ENDS[shot.end], 2 * self._scale)
        if not self._parts:
            return screen
        before = self._shown
        decided = before is None or shot.chances is not before.chances
        if decided:
            self._values.append(shot.value)
        if self._drawn is None or before is None or decided or shot.end != before.end:
            self._drawn, self._shown = self._panel(shot, screen.shape[0]), shot
        return np.concatenate((screen, self._drawn), 1)

    def _panel(self, shot: Shot, height: int) -> Image:
        s = self._scale
        panel = Pillow.new("RGB", (PANEL * s, height), PAPER)
        draw = ImageDraw.Draw(panel)
        title = f"{shot.stage}  delay {shot.case.start_delay}  {shot.case.policy}"
        draw.text((6 * s, 4 * s), title, fill=INK, font=self._font)
        draw.text(
            (6 * s, 13 * s), shot.end or f"x {shot.x}", fill=ENDS.get(shot.end, FAINT),
            font=self._font,
        )  # fmt: skip
        top = 24
        for part, used in (("buttons", 44), ("value", 44)):
            if part in self._parts:
                {"buttons": self._buttons, "value": self._value}[part](draw, shot, top)
                top += used
        if "policy" in self._parts:
            self._policy(draw, shot, top)
            top += 8 * min(len(self._names), 12) + 6
        if "view" in self._parts:
            self._view(panel, shot, top, height)
        return np.asarray(panel)

    def _buttons(self, draw: ImageDraw.ImageDraw, shot: Shot, top: int) -> None:
        s = self._scale
        for name, (left, up, right, down) in _PAD.items():
            held = shot.mask & BUTTONS[name]
            colour = HOT if held else FAINT
            box = [(left + 4) * s, (top + up) * s, (right + 4) * s, (top + down) * s]
            if name in "AB":
                draw.ellipse(box, fill=colour)
                place = ((left + 8) * s, (top + down) * s)
                draw.text(place, name, fill=FAINT, font=self._font)
            else:
                draw.rectangle(box, fill=colour)

    def _value(self, draw: ImageDraw.ImageDraw, shot: Shot, top: int) -> None:
        s = self._scale
        text = f"value {self._values[-1] if self._values else shot.value:.1f}"
        draw.text((6 * s, top * s), text, fill=INK, font=self._font)
        low, high = min(self._values, default=0.0), max(self._values, default=1.0)
        span = max(high - low, 1e-6)
        points = [
            ((6 + index) * s, (top + 40 - 28 * (value - low) / span) * s)
            for index, value in enumerate(self._values)
        ]
        if len(points) > 1:
            draw.line(points, fill=COOL, width=max(1, s // 2))

    def _policy(self, draw: ImageDraw.ImageDraw, shot: Shot, top: int) -> None:
        s = self._scale
        shown = list(enumerate(self._names))[:12]
        for row, (action, name) in enumerate(shown):
            y = top + 8 * row
            chosen = action == shot.action
            width = 54 * float(shot.chances[action])
            draw.rectangle(
                [52 * s, (y + 1) * s, (52 + width) * s, (y + 6) * s],
                fill=HOT if chosen else COOL,
            )
            draw.text((6 * s, y * s), name, fill=INK if chosen else FAINT, font=self._font)

    def _view(self, panel: Pillow.Image, shot: Shot, top: int, height: int) -> None:
        """The newest frame as the network gets it, as large as fits."""
        room = min(height // self._scale - top - 6, PANEL - 12) * self._scale
        if room < 24:
            return
        picture = visible(shot.seen)
        size = (room, room * picture.shape[0] // picture.shape[1])
        seen = Pillow.fromarray(picture).resize(size, Pillow.Resampling.NEAREST)
        panel.paste(seen.convert("RGB"), (6 * self._scale, top * self._scale))


def visible(seen: Image) -> Image:
    """An observation as a picture: colours side by side in a pixel, tiles as shades of gray, RAM
    as a block with a shade for each byte."""
    height, width = seen.shape
    if height == 3 * width:
        return np.ascontiguousarray(np.moveaxis(seen.reshape(3, width, width), 0, -1))
    if (height, width) == GRIDS["ram"]:
        return ram_block(seen)
    if (height, width) == GRIDS["tiles"]:
        return (seen.astype(np.float32) * (255.0 / max(1, int(seen.max())))).astype(np.uint8)
    return seen


def parse_parts(text: str) -> tuple[str, ...]:
    """`all`, `none`, or some of the parts."""
    if text in ("all", "none"):
        return PARTS if text == "all" else ()
    parts = tuple(part.strip() for part in text.split(","))
    for part in parts:
        if part not in PARTS:
            raise ValueError(
                f"there is no overlay {part!r}; it is all, none, or some of {', '.join(PARTS)}"
            )
    return parts


def framed(image: Image, colour: tuple[int, int, int], width: int) -> Image:
    """A copy with a coloured frame inside its edges."""
    picture = image.copy()
    for side in (
        picture[:width],
        picture[-width:],
        picture[:, :width],
        picture[:, -width:],
    ):
        side[:] = colour
    return picture
