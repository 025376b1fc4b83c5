"""Scrolls through an area: Mario runs above the top of the screen, where nothing blocks him, and
the pictures are stitched together. Sprites are hidden before each picture is taken."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.actions import BUTTONS
from warpzone.env.options import SCREEN_WIDTH, STATUS_BAR_LINES

Image = NDArray[np.uint8]
RAM = _engine.RAM

PAGE = 256
#: Frames between two pictures: fewer than a screen's width at full speed.
EVERY = 24
#: 1/16 pixel a frame; the fastest that the game lays out an area for.
SPEED = 0x28
#: Frames without scrolling after which the area has ended.
STILL = 90
#: More than the longest area takes.
LIMIT = 8000
#: How far the castle behind the flag is part of the picture.
BEHIND_FLAG = 224
TILE = 16
HEADER = 16
SPRITE_BYTES = 256
#: The slot of the flag on its pole: behind the enemies'.
FLAG_SLOT = 5
#: The byte that ends an area's data.
END_OF_DATA = 0xFD
_RUN = BUTTONS["RIGHT"] | BUTTONS["B"]


@dataclass
class AreaPicture:
    """A part of an area: its picture without the status bar, and where it begins."""

    area_type: int
    area_index: int
    left: int
    picture: Image
    #: Other areas that pipes and vines lead to: (type << 5 | index, page).
    exits: list[tuple[int, int]] = field(default_factory=list)

    @property
    def key(self) -> tuple[int, int]:
        """Which area it is."""
        return self.area_type, self.area_index


class Flight:
    """One flight from where the console stands to the end of the area."""

    def __init__(self, console: _engine.Console, rom: bytes) -> None:
        self._console = console
        self._rom = rom
        self._columns: dict[int, Image] = {}
        self._exits: dict[tuple[int, int], None] = {}

    def fly(self) -> AreaPicture:
        """Scrolls to the end, and returns the picture."""
        ram = self._console.ram()
        area = int(ram[RAM["area_type"]]), int(ram[RAM["area_index"]])
        end, still, left = None, 0, _left(ram)
        self._settle()
        for frame in range(LIMIT):
            self._steer()
            before = left
            if frame % EVERY == 0:
                self._take(before)
            else:
                self._console.frame(_RUN)
            ram = self._console.ram()
            left = _left(ram)
            still = still + 1 if left == before else 0
            self._exits[int(ram[RAM["next_area"]]) & 0x7F, int(ram[RAM["next_page"]])] = None
            end = end or self._end(ram, left)
            if still > STILL or (end is not None and left + SCREEN_WIDTH > end + EVERY * 3):
                break
            if (
                ram[RAM["game_task"]] != _engine.GameTask.PLAYING
                or (int(ram[RAM["area_type"]]), int(ram[RAM["area_index"]])) != area
            ):
                break
        if still > STILL:
            # Tiles drawn while the screen stood still, such as the text of a warp zone.
            self._steer()
            self._take(left, again=True)
        return self._stitched(area, end)

    def _settle(self) -> None:
        """Until sprites and colours are what the pokes make of them."""
        for _ in range(4):
            self._steer(speed=0)
            self._hide()
            self._console.frame(0)

    def _steer(self, speed: int = SPEED) -> None:
        """Above the screen, fast, safe, past the checks of mazes, and colours as they begin."""
        poke = self._console.poke
        poke(RAM["player_y_high"], 0)
        poke(RAM["player_y"], 0x80)
        poke(RAM["player_y_speed"], 0)
        poke(RAM["player_y_force"], 0)
        poke(RAM["float_state"], 0)
        poke(RAM["player_x_speed"], speed)
        poke(RAM["star_timer"], 0x20)
        poke(RAM["loop_command"], 0)
        poke(RAM["color_turn"], 0)

    def _hide(self) -> None:
        # All but the first: the game waits for it to be drawn, below the status bar.
        for address in range(RAM["sprites"] + 4, RAM["sprites"] + SPRITE_BYTES, 4):
            self._console.poke(address, 0xF8)

    def _take(self, left: int, again: bool = False) -> None:
        """Plays a frame and keeps its picture; it shows the scrolling of the frame before."""
        self._hide()
        self._console.frame(_RUN)
        screen = self._console.screen()[STATUS_BAR_LINES:]
        for column in range(SCREEN_WIDTH):
            if again or left + column not in self._columns:
                self._columns[left + column] = screen[:, column]

    def _end(self, ram: NDArray[np.uint8], left: int) -> int | None:
        """Where the picture ends: behind the flag, or where the area's data does."""
        slot = FLAG_SLOT
        if ram[RAM["enemy_type"] + slot] == _engine.EnemyType.FLAG:
            flag = int(ram[RAM["enemy_x_page"] + slot]) * PAGE + int(ram[RAM["enemy_x"] + slot])
            return -(-(flag + BEHIND_FLAG) // TILE) * TILE
        address = int(ram[RAM["area_data"]]) | int(ram[RAM["area_data"] + 1]) << 8
        place = address - 0x8000 + int(ram[RAM["area_data_offset"]]) + HEADER
        if 0 <= place < len(self._rom) and self._rom[place] == END_OF_DATA:
            return left + 2 * SCREEN_WIDTH
        return None

    def _stitched(self, area: tuple[int, int], end: int | None) -> AreaPicture:
        places = [x for x in sorted(self._columns) if end is None or x < end]
        picture = np.stack([self._columns[x] for x in places], 1)
        exits = [key for key in self._exits if key != (area[0] << 5 | area[1], 0)]
        return AreaPicture(*area, places[0], picture, exits)


def _left(ram: NDArray[np.uint8]) -> int:
    return int(ram[RAM["screen_x_page"]]) * PAGE + int(ram[RAM["screen_x"]])
