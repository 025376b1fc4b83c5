"""From the engine's info rows to Gymnasium's info dictionaries."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine

#: The place of each field in an info row of the engine.
COLUMN = {name: index for index, name in enumerate(_engine.INFO_FIELDS)}

Bools = NDArray[np.bool_]
Ints = NDArray[np.int32]

ENEMY_SLOTS = 5
#: What each enemy slot holds, in order; `infos["enemies"]` is `[lanes, slots, these]`.
ENEMY_FIELDS = ("type", "active", "x", "y")

#: Every field of an info and what it says. The first ten are those of gym-super-mario-bros.
INFO_DOCS: dict[str, str] = {
    "coins": "coins in the status bar, 0 to 99",
    "flag_get": "whether the flag or the axe has been reached (bool)",
    "life": "lives left after this one; 255 when the game is over",
    "score": "points in the status bar",
    "stage": "stage of the world, 1 to 4",
    "status": "0 small, 1 tall, 2 fire; gym-super-mario-bros' names are in STATUS_NAMES",
    "time": "clock in the status bar",
    "world": "world, 1 to 8",
    "x_pos": "Mario's x in the area, in pixels",
    "y_pos": "Mario's height above the bottom of the screen, in pixels",
    "area": "area number inside the world, from 1",
    "player_state": "the game's own state of Mario: 8 is normal play, 6 and 11 are death",
    "power": "the game's power-up byte, as it is in RAM",
    "x_speed": "horizontal speed, 1/16 pixel a frame, negative to the left",
    "y_speed": "vertical speed in pixels a frame, negative upwards",
    "float_state": "0 on the ground, 1 jumping, 2 falling, 3 on a pole or vine",
    "facing": "1 right, 2 left",
    "swimming": "1 under water",
    "star_timer": "ticks left of a star",
    "screen_x": "x of the left edge of the screen",
    "area_type": "0 water, 1 overground, 2 underground, 3 castle",
    "area_index": "which map of that type",
    "loop_command": "1 while a castle maze checks the path",
    "loops_correct": "maze forks passed the right way",
    "loops_passed": "maze forks passed in all",
    "dying": "1 from the moment Mario is hit or falls",
    "game_over": "1 when the last life is lost",
    "enemies": "[5, 4]: for each enemy slot its type, whether it is active, x and height",
    "furthest_x": "furthest x reached in this map, the base of the progress reward",
    "steps": "steps of the episode",
    "start_delay": "frames without input at the start of the episode",
    "start_stage": "stage the episode started in, 0 to 31; -1 for the whole game",
    "restart": "restart point the episode began from; 0 the stage's start, 2147483647 halfway",
    "forced": "1 if a script, not the action, pressed the buttons of this step",
    "buttons": "button mask that was held in the last frame of this step",
}

#: Words for `power` in 0..2, and for an episode that begins in the middle of its stage.
BEGUN = ("small", "big", "fire")
HALFWAY = "halfway"
#: gym-super-mario-bros' words for `status`.
STATUS_NAMES = ("small", "tall", "fireball")
#: The field that is yes or no.
FLAG = "flag_get"
#: Blocks that may wait for their turn; more than these are only in use when the caller keeps them.
_BLOCKS = 3


def began(power: int, restart: int) -> str:
    """What the first info of an episode says it began as: small, big, fire or halfway."""
    return HALFWAY if restart == _engine.HALFWAY_RESTART else BEGUN[power]


class InfoBlock:
    """Info rows the engine can write, and the dictionary of arrays that shows them."""

    def __init__(self, columns: Sequence[str], lanes: int) -> None:
        self.rows: Ints = np.zeros((lanes, len(columns)), np.int32)
        self._mask: Bools = np.ones(lanes, np.bool_)
        self._flag: Bools = np.zeros(lanes, np.bool_)
        self._flag_column: Ints = self.rows[:, columns.index(FLAG)]
        self._infos = {**_views(self.rows, columns), FLAG: self._flag}
        self._watched = [self.rows, self._mask, *self._infos.values()]
        self._infos.update({f"_{name}": self._mask for name in self._infos})
        # Counted when all locals that saw the views are gone.
        self._unshared = self._references()

    def free(self) -> bool:
        """Whether only this block holds its arrays and their views."""
        return self._references() == self._unshared

    def infos(self) -> dict[str, Any]:
        """The arrays as the engine has left them."""
        np.not_equal(self._flag_column, 0, out=self._flag)
        self._mask.fill(True)
        return self._infos.copy()

    def masked(self, mask: Bools) -> dict[str, Any]:
        """The same of some lanes only: zero elsewhere, with Gymnasium's `_field` masks."""
        self.rows[~mask] = 0
        infos = self.infos()
        self._mask[:] = mask
        return infos

    def _references(self) -> int:
        return sum(map(sys.getrefcount, self._watched))


def _views(rows: Ints, columns: Sequence[str]) -> dict[str, Any]:
    """A view of each column; the enemies' are one."""
    views: dict[str, Any] = {
        name: rows[:, index] for index, name in enumerate(columns) if not name.startswith("enemy")
    }
    first = columns.index("enemy0_type")
    slots = rows[:, first : first + ENEMY_SLOTS * len(ENEMY_FIELDS)]
    views["enemies"] = slots.reshape(len(rows), ENEMY_SLOTS, len(ENEMY_FIELDS))
    return views


class InfoBuilder:
    """Makes Gymnasium's info dictionaries: `{field: [lanes]}` with a `_field` mask for each.

    Making some thirty views costs more than a whole game's step, so blocks are used again once the
    caller has let go of everything in them.
    """

    def __init__(self, columns: Sequence[str], lanes: int) -> None:
        self._columns = tuple(columns)
        self._lanes = lanes
        self._blocks: list[InfoBlock] = []

    def take(self) -> InfoBlock:
        """A block that no caller holds."""
        for block in self._blocks:
            if block.free():
                return block
        block = InfoBlock(self._columns, self._lanes)
        if len(self._blocks) == _BLOCKS:
            self._blocks.pop(0)
        self._blocks.append(block)
        return block

    def single(self, row: Ints) -> dict[str, Any]:
        """Plain Python numbers of one lane."""
        first = self._columns.index("enemy0_type")
        last = first + ENEMY_SLOTS * len(ENEMY_FIELDS)
        values = row.tolist()
        info: dict[str, Any] = dict(zip(self._columns[:first], values, strict=False))
        info.update(zip(self._columns[last:], values[last:], strict=True))
        info["enemies"] = row[first:last].reshape(ENEMY_SLOTS, len(ENEMY_FIELDS)).copy()
        info[FLAG] = bool(info[FLAG])
        return info

    def add_final(
        self, infos: dict[str, Any], ended: Bools, final_obs: NDArray[np.uint8], final_info: Ints
    ) -> None:
        """`final_obs` and `final_info` of lanes that ended, as Gymnasium's own envs give them."""
        observations = np.full(len(ended), None, dtype=object)
        for lane in np.flatnonzero(ended):
            observations[lane] = final_obs[lane].copy()
        block = InfoBlock(self._columns, len(ended))
        block.rows[:] = final_info
        infos["final_obs"], infos["_final_obs"] = observations, ended
        infos["final_info"], infos["_final_info"] = block.masked(ended), ended.copy()
