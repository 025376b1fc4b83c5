"""Set-backs in mazes: the engine's rule against one that reads the game's memory frame by frame, on
recorded right and wrong ways through 4-4, 7-4 and 8-4 of both ROMs."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from warpzone import _engine, rom
from warpzone.env.actions import action_table
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.rom import native

WAYS = json.loads((Path(__file__).parents[1] / "golden" / "mazes.json").read_text())["ways"]
CASES = [(name, way) for name, ways in WAYS.items() for way in ways]
#: Where the game keeps what the rule is about; stated here once more on purpose.
PAGE, STATE, AREA, RIGHT_TURNS, TURNS = 0x6D, 0x0E, (0x074E, 0x074F), 0x06D9, 0x06DA
IN_CONTROL = 8
SKIP = 4


class Ending(NamedTuple):
    """How a recorded way ended."""

    frame: int
    flag: bool
    dead: bool


def play(name: str, way: str, end: str) -> tuple[Ending | None, list[bytes]]:
    """Plays a way frame by frame; also the game's memory after each frame."""
    variant, stage = name.split()
    image = rom.find(variant)
    options = Options(stages=stage, actions="complex", frame_skip=1, frame_stack=1, size=8, end=end)
    vector = options.make_vector(
        image, 1, native=native.load(image), autoreset=_engine.Autoreset.DISABLED
    )
    obs = np.zeros((1, *vector.obs_shape), np.uint8)
    reward, terminated, truncated = np.zeros(1, np.float32), np.zeros(1, bool), np.zeros(1, bool)
    info = np.zeros((1, len(COLUMN)), np.int32)
    memory: list[bytes] = []
    ending = None
    try:
        vector.reset(None, obs, info)
        for action in (int(letter, 12) for letter in WAYS[name][way] for _ in range(SKIP)):
            vector.step(np.array([action]), obs, reward, terminated, truncated, info, None, None)
            memory.append(vector.ram([0]).tobytes())
            if terminated[0]:
                row = info[0]
                flag, dead = bool(row[COLUMN["flag_get"]]), bool(row[COLUMN["dying"]])
                ending = Ending(len(memory), flag, dead)
                break
    finally:
        vector.close()
    return ending, memory


def first_setback(memory: list[bytes]) -> int | None:
    """The frame in which the game has sent Mario back, or has counted a turn for which it will: his
    page in a map is lower by two than the furthest that he was on in it."""
    furthest: dict[tuple[int, ...], int] = {}
    for frame, ram in enumerate(memory, 1):
        if ram[STATE] != IN_CONTROL:
            continue
        if ram[TURNS] > ram[RIGHT_TURNS]:
            return frame
        area = tuple(ram[address] for address in AREA)
        # A loop near the start of a map leads to pages below zero.
        page = ram[PAGE] if ram[PAGE] < 0x80 else ram[PAGE] - 0x100
        if page <= furthest.get(area, page) - 2:
            return frame
        furthest[area] = max(furthest.get(area, page), page)
    return None


def test_the_ways_use_every_maze_of_both_roms() -> None:
    assert sorted(WAYS) == sorted(
        f"{r} {s}" for r in ("eu", "world") for s in ("4-4", "7-4", "8-4")
    )
    assert len(action_table("complex").masks) == 12


@pytest.mark.parametrize(("name", "way"), CASES)
def test_a_way_ends_where_the_game_sends_mario_back(name: str, way: str) -> None:
    ending, _ = play(name, way, "setback")
    _, memory = play(name, way, "life")
    assert ending is not None
    assert not ending.dead
    expected = first_setback(memory)
    if way == "right":
        assert expected is None
        assert ending.flag
    else:
        # The scene of a pipe is skipped after its frame is accounted for: seen one frame later.
        assert expected is not None
        assert ending.frame - expected in (0, 1)
        assert not ending.flag


@pytest.mark.parametrize("name", WAYS)
def test_without_the_rule_the_game_goes_on(name: str) -> None:
    ending, memory = play(name, "wrong", "life")
    assert ending is None
    assert len(memory) == SKIP * len(WAYS[name]["wrong"])
    assert first_setback(memory) is not None
