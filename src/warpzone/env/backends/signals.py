"""What the game's RAM means, for many lanes at once: the engine's signals in NumPy.

Every function takes RAM as `[lanes, 2048]` and returns one value for each lane. Names, addresses
and quirks are those of `engine/game/signals.hpp`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from warpzone.env.backends.interface import Bools, Bytes, Ints
from warpzone.env.infos import COLUMN

PLAYER_STATE = 0x000E
ENEMY_ACTIVE = 0x000F
ENEMY_TYPE = 0x0016
FLOAT_STATE = 0x001D
FACING = 0x0033
PLAYER_X_SPEED = 0x0057
PLAYER_X_PAGE = 0x006D
ENEMY_X_PAGE = 0x006E
PLAYER_X = 0x0086
ENEMY_X = 0x0087
PLAYER_Y_SPEED = 0x009F
PLAYER_Y_HIGH = 0x00B5
ENEMY_Y_HIGH = 0x00B6
ENEMY_Y = 0x00CF
PLAYER_Y_ON_SCREEN = 0x03B8
LOOPS_CORRECT = 0x06D9
LOOPS_PASSED = 0x06DA
CHANGE_AREA_TIMER = 0x06DE
SWIMMING = 0x0704
SCREEN_X_PAGE = 0x071A
SCREEN_X = 0x071C
LOOP_COMMAND = 0x0745
AREA_TYPE = 0x074E
AREA_INDEX = 0x074F
POWER = 0x0756
LIFE = 0x075A
STAGE = 0x075C
WORLD = 0x075F
AREA = 0x0760
GAME_MODE = 0x0770
GAME_TASK = 0x0772
STAR_TIMER = 0x079F
PRELEVEL_TIMER = 0x07A0
SCORE = 0x07DE
COINS = 0x07ED
TIME = 0x07F8

DEAD, IN_CONTROL, DYING = 0x06, 0x08, 0x0B
PLAYING, WORLD_OVER, PLAYING_TASK = 1, 2, 3
ON_FLAGPOLE, GAME_OVER_LIFE = 3, 0xFF
BOWSER, FLAGPOLE_FLAG = 0x2D, 0x31
ENEMY_SLOTS = 5


#: Columns that are a byte of RAM, as it is.
_BYTES = {
    "life": LIFE,
    "player_state": PLAYER_STATE,
    "power": POWER,
    "float_state": FLOAT_STATE,
    "facing": FACING,
    "swimming": SWIMMING,
    "star_timer": STAR_TIMER,
    "area_type": AREA_TYPE,
    "area_index": AREA_INDEX,
    "loop_command": LOOP_COMMAND,
    "loops_correct": LOOPS_CORRECT,
    "loops_passed": LOOPS_PASSED,
}
_FROM_ONE = {"stage": STAGE, "world": WORLD, "area": AREA}


def digits(ram: Bytes, address: int, count: int) -> NDArray[np.int64]:
    """The number that decimal digits spell. A byte above 9 (seen while a stage loads) contributes
    all its own digits, as it does when bytes are joined as text."""
    value = np.zeros(len(ram), np.int64)
    for offset in range(count):
        digit = ram[:, address + offset].astype(np.int64)
        value = value * np.where(digit < 10, 10, np.where(digit < 100, 100, 1000)) + digit
    return value


def game_time(ram: Bytes) -> Ints:
    """The clock in the status bar."""
    return digits(ram, TIME, 3).astype(np.int32)


def x_position(ram: Bytes) -> Ints:
    """Mario's x in the area."""
    return _word(ram[:, PLAYER_X_PAGE], ram[:, PLAYER_X])


def is_dying(ram: Bytes) -> Bools:
    """In the dying animation, below the screen, or dead."""
    state = ram[:, PLAYER_STATE]
    dying: Bools = (ram[:, PLAYER_Y_HIGH] > 1) | (state == DYING) | (state == DEAD)
    return dying


def is_game_over(ram: Bytes) -> Bools:
    """No life is left."""
    over: Bools = ram[:, LIFE] == GAME_OVER_LIFE
    return over


def is_world_over(ram: Bytes) -> Bools:
    """The axe has been reached."""
    over: Bools = ram[:, GAME_MODE] == WORLD_OVER
    return over


def flag_get(ram: Bytes) -> Bools:
    """The flag of a stage or the axe of a castle. A vine looks like the flagpole otherwise, so a
    flag or Bowser must be in an enemy slot."""
    types = ram[:, ENEMY_TYPE : ENEMY_TYPE + ENEMY_SLOTS]
    marked = ((types == BOWSER) | (types == FLAGPOLE_FLAG)).any(axis=1)
    reached: Bools = is_world_over(ram) | (marked & (ram[:, FLOAT_STATE] == ON_FLAGPOLE))
    return reached


def is_game_won(ram: Bytes) -> Bools:
    """The princess is saved."""
    won: Bools = is_world_over(ram) & (ram[:, WORLD] == 7)
    return won


def in_control(ram: Bytes) -> Bools:
    """The player moves Mario: no loading, no scene, no animation."""
    playing = (ram[:, GAME_MODE] == PLAYING) & (ram[:, GAME_TASK] == PLAYING_TASK)
    controlled: Bools = playing & (ram[:, PLAYER_STATE] == IN_CONTROL)
    return controlled


def write_signals(ram: Bytes, info: Ints) -> None:
    """Fills the columns that come from RAM; those of the episode are left alone."""
    for name, address in _BYTES.items():
        info[:, COLUMN[name]] = ram[:, address]
    for name, address in _FROM_ONE.items():
        info[:, COLUMN[name]] = ram[:, address].astype(np.int32) + 1
    for name, address in (("x_speed", PLAYER_X_SPEED), ("y_speed", PLAYER_Y_SPEED)):
        info[:, COLUMN[name]] = ram[:, address].astype(np.int8)
    largest = np.iinfo(np.int32).max
    info[:, COLUMN["coins"]] = np.minimum(digits(ram, COINS, 2), largest)
    info[:, COLUMN["score"]] = np.minimum(digits(ram, SCORE, 6), largest)
    info[:, COLUMN["time"]] = game_time(ram)
    info[:, COLUMN["flag_get"]] = flag_get(ram)
    info[:, COLUMN["status"]] = np.minimum(ram[:, POWER], 2)
    info[:, COLUMN["x_pos"]] = x_position(ram)
    info[:, COLUMN["y_pos"]] = _height(ram[:, PLAYER_Y_ON_SCREEN], ram[:, PLAYER_Y_HIGH])
    info[:, COLUMN["screen_x"]] = _word(ram[:, SCREEN_X_PAGE], ram[:, SCREEN_X])
    info[:, COLUMN["dying"]] = is_dying(ram)
    info[:, COLUMN["game_over"]] = is_game_over(ram)
    first = COLUMN["enemy0_type"]
    enemies = info[:, first : first + 4 * ENEMY_SLOTS].reshape(len(info), ENEMY_SLOTS, 4)
    enemies[:, :, 0] = _slots(ram, ENEMY_TYPE)
    enemies[:, :, 1] = _slots(ram, ENEMY_ACTIVE)
    enemies[:, :, 2] = _word(_slots(ram, ENEMY_X_PAGE), _slots(ram, ENEMY_X))
    enemies[:, :, 3] = _height(_slots(ram, ENEMY_Y), _slots(ram, ENEMY_Y_HIGH))
    info[:, first : first + 4 * ENEMY_SLOTS] = enemies.reshape(len(info), -1)


def _slots(ram: Bytes, address: int) -> Bytes:
    return ram[:, address : address + ENEMY_SLOTS]


def _word(high: Bytes, low: Bytes) -> Ints:
    word: Ints = high.astype(np.int32) * 0x100 + low
    return word


def _height(y: Bytes, high: Bytes) -> Ints:
    above: Ints = 255 - y.astype(np.int32)
    return np.where(high < 1, 255 + above, above).astype(np.int32)
