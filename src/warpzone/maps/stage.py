"""All areas of a stage, each as one picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.maps.flight import AreaPicture, Flight

RAM = _engine.RAM
#: More than the game takes to load an area.
PATIENCE = 2000
#: How a pipe lets Mario arrive.
BY_PIPE = 2


def draw_stage(
    rom: bytes, native: _engine.NativeProgram | None, stage: int, *, rooms: bool = True
) -> list[AreaPicture]:
    """The area that the stage starts in, and with `rooms` those that its pipes and vines lead to,
    in the order in which they are met."""
    console = start_stage(rom, native, stage)
    begin = console.save()
    first = Flight(console, rom).fly()
    found = {first.key: first}
    # From there everything leads back, or to the flag.
    for area, page in first.exits if rooms else ():
        if not _is_new(found, area, page):
            continue
        console.load(begin)
        if not _enter(console, area, page):
            continue
        part = Flight(console, rom).fly()
        found[part.key] = _joined(found.get(part.key), part)
    return list(found.values())


def start_stage(rom: bytes, native: _engine.NativeProgram | None, stage: int) -> _engine.Console:
    """A console at the start of a stage, reached as the engine's own lanes reach it."""
    console = _engine.Console(rom, native=native)
    console.start_stage(stage)
    return console


def _enter(console: _engine.Console, area: int, page: int) -> bool:
    """Sends Mario through a pipe to another area; whether he arrives."""
    for address, value in (
        (RAM["next_area"], area),
        (RAM["next_page"], page),
        (RAM["arrival"], BY_PIPE),
        (RAM["screen_off"], 1),
        (RAM["sprite_zero_check"], 0),
        (RAM["game_task"], 0),
    ):
        console.poke(address, value)
    for _ in range(PATIENCE):
        console.frame(0)
        ram = console.ram()
        playing = ram[RAM["game_task"]] == _engine.GameTask.PLAYING
        if playing and ram[RAM["player_state"]] == _engine.PlayerState.IN_CONTROL:
            return int(ram[RAM["area_type"]]) << 5 | int(ram[RAM["area_index"]]) == area
    return False


def _is_new(found: dict[tuple[int, int], AreaPicture], area: int, page: int) -> bool:
    """Whether no picture contains the page yet."""
    known = found.get((area >> 5, area & 0x1F))
    if known is None:
        return True
    return not known.left <= page * 256 < known.left + known.picture.shape[1]


def _joined(known: AreaPicture | None, part: AreaPicture) -> AreaPicture:
    """Two parts of an area as one picture, black where neither has been."""
    if known is None:
        return part
    left = min(known.left, part.left)
    right = max(p.left + p.picture.shape[1] for p in (known, part))
    picture: NDArray[np.uint8] = np.zeros((known.picture.shape[0], right - left, 3), np.uint8)
    for piece in (known, part):
        at = piece.left - left
        picture[:, at : at + piece.picture.shape[1]] = piece.picture
    exits = list(dict.fromkeys((*known.exits, *part.exits)))
    return AreaPicture(known.area_type, known.area_index, left, picture, exits)
