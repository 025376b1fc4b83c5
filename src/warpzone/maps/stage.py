"""All areas of a stage, each as one picture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.actions import BUTTONS
from warpzone.env.stages import STAGES_PER_WORLD
from warpzone.maps import addresses
from warpzone.maps.flight import AreaPicture, Flight

#: Worlds that count the walk into the first pipe as an area of its own.
ENTRY_SCENES = (0, 1, 3, 6)
#: More than the game takes to start or to load an area.
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
    world, level = divmod(stage, STAGES_PER_WORLD)
    console = _engine.Console(rom, native=native)
    press = BUTTONS["START"]
    console.frames(bytes((press, 0)))
    for _ in range(PATIENCE):
        if _clock(console):
            break
        console.frame(press)
        console.poke(addresses.WORLD, world)
        console.poke(addresses.STAGE, level)
        entered = world in ENTRY_SCENES and level >= 1
        console.poke(addresses.AREA, level + entered)
        console.frame(0)
        console.poke(addresses.PRELEVEL_TIMER, 0)
    clock = _clock(console)
    for _ in range(PATIENCE):
        if _clock(console) < clock:
            return console
        clock = _clock(console)
        console.frames(bytes((press, 0)))
    raise RuntimeError(f"the game did not come to stage {world + 1}-{level + 1}")


def _enter(console: _engine.Console, area: int, page: int) -> bool:
    """Sends Mario through a pipe to another area; whether he arrives."""
    for address, value in (
        (addresses.NEXT_AREA, area),
        (addresses.NEXT_PAGE, page),
        (addresses.ARRIVAL, BY_PIPE),
        (addresses.SCREEN_OFF, 1),
        (addresses.SPRITE_0_CHECK, 0),
        (addresses.TASK, 0),
    ):
        console.poke(address, value)
    for _ in range(PATIENCE):
        console.frame(0)
        ram = console.ram()
        playing = ram[addresses.TASK] == addresses.PLAYING
        if playing and ram[addresses.PLAYER_STATE] == addresses.IN_CONTROL:
            return int(ram[addresses.AREA_TYPE]) << 5 | int(ram[addresses.AREA_INDEX]) == area
    return False


def _is_new(found: dict[tuple[int, int], AreaPicture], area: int, page: int) -> bool:
    """Whether the page is in none of the pictures yet."""
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


def _clock(console: _engine.Console) -> int:
    digits = [int(digit) for digit in console.ram()[addresses.TIME : addresses.TIME + 3]]
    # Until the game has cleared its memory after power-on, the digits are not digits.
    return digits[0] * 100 + digits[1] * 10 + digits[2] if digits[0] <= 9 else 0
