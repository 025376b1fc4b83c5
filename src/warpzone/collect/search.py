"""Looks for a way through a stage by trial, without a network.

Saved places, random buttons held from there for a while, every new place saved: after the first
phase of Go-Explore (Ecoffet et al. 2021). The engine alone plays many times faster than a network
decides, so a place that the policy never tries is found within seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options
from warpzone.env.stages import stage_name

#: Games that are tried at once. The same number on every machine: results depend on it.
LANES = 128
#: Steps that a trial lasts, and for which each button is held.
TRIAL = 48
HOLDING = (1, 14)
#: Pixels that a place is wide and high.
WIDTH = 32
HEIGHT = 32
#: Pixels of Mario's position on the screen that tell places apart. The first pipe of 8-4 can be
#: entered only with the screen behind: once it has scrolled too far, the game leads back.
SCREEN = 16
#: What tells maps and rounds of a maze apart; as in the archive.
MAP = ("world", "stage", "area_type", "area_index", "loops_correct")


@dataclass(frozen=True, eq=False)
class Place:
    """A place that was reached: how, from another one, and the lane there."""

    state: bytes
    before: Place | None
    actions: bytes
    length: int


@dataclass(frozen=True)
class Way:
    """Actions from the start of a stage to its flag; `seed` draws the start."""

    stage: int
    seed: int
    actions: list[int] = field(repr=False)


def find_way(
    options: Options,
    rom: bytes,
    native: _engine.NativeProgram | None,
    *,
    stage: int,
    seed: int,
    chances: NDArray[np.float64],
    most_steps: int,
    known: Sequence[Sequence[int]] = (),
    num_threads: int = 1,
) -> tuple[Way | None, int]:
    """A way through the stage, or None when `most_steps` were not enough; and the steps taken.

    options: of the lanes that the way is for. chances: of the actions. known: ways from other
    starts; places along them, as far as they lead from this one, are tried from as well. Results
    depend on no thread."""
    # A way is one from the door: practice goes backwards to it.
    door = replace(options, start_halfway=0.0)
    lanes = replace(door, stages=[[stage_name(stage)]] * LANES, obs="ram", frame_stack=1)
    vector = lanes.make_vector(
        rom, LANES, autoreset=_engine.Autoreset.SAME_STEP, native=native, num_threads=num_threads
    )
    try:
        return _Trials(vector, stage, seed, chances).run(most_steps, known)
    finally:
        vector.close()


class _Trials:
    """The places found so far, and the lanes that look for more."""

    def __init__(
        self, vector: _engine.Vector, stage: int, seed: int, chances: NDArray[np.float64]
    ) -> None:
        self.vector = vector
        self.stage = stage
        self.seed = seed
        self.chances = chances
        self.random = np.random.default_rng([seed, stage])
        rows = (LANES, *vector.obs_shape)
        self._obs, self._final_obs = np.zeros(rows, np.uint8), np.zeros(rows, np.uint8)
        self._info = np.zeros((LANES, len(_engine.INFO_FIELDS)), np.int32)
        self._final_info = np.zeros_like(self._info)
        self._reward = np.zeros(LANES, np.float32)
        self._terminated, self._truncated = np.zeros((2, LANES), np.bool_)
        # All begin with the same start, which another lane of this seed draws as well.
        vector.seed([seed] * LANES)
        vector.reset(None, self._obs, self._info)
        first = Place(vector.save(0), None, b"", 0)
        self._places: dict[tuple[int, ...], int] = {place_keys(self._info)[0]: 0}
        self._list = [first]
        self._visits = [0]

    def run(self, most_steps: int, known: Sequence[Sequence[int]]) -> tuple[Way | None, int]:
        taken = 0
        for begin in range(0, len(known), LANES):
            ways = known[begin : begin + LANES]
            taken += sum(map(len, ways))
            if (found := self._go_along(ways)) is not None:
                return Way(self.stage, self.seed, found), taken
        while taken < most_steps:
            found = self._trial()
            taken += LANES * TRIAL
            if found is not None:
                return Way(self.stage, self.seed, found), taken
        return None, taken

    def _go_along(self, ways: Sequence[Sequence[int]]) -> list[int] | None:
        """Plays a lane along each of these ways; the first of them that reaches the flag."""
        lengths = np.array([len(way) for way in ways] + [0] * (LANES - len(ways)))
        actions = np.zeros((int(lengths.max()), LANES), np.int64)
        for lane, way in enumerate(ways):
            actions[: len(way), lane] = way
            self.vector.load(lane, self._list[0].state)
        return self._play([self._list[0]] * LANES, actions, lengths)

    def _trial(self) -> list[int] | None:
        weights = 1.0 / np.sqrt(np.array(self._visits) + 1.0)
        chosen = self.random.choice(len(self._list), LANES, p=weights / weights.sum())
        begun = [self._list[index] for index in chosen]
        for lane, index in enumerate(chosen):
            self._visits[index] += 1
            self.vector.load(lane, begun[lane].state)
        return self._play(begun, self._draw_actions(), np.full(LANES, TRIAL))

    def _play(
        self, begun: list[Place], actions: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> list[int] | None:
        """Plays each lane for its number of actions, [steps, LANES], and saves the places it comes
        to; the way of the first lane that reaches the flag."""
        alive = lengths > 0
        for step in range(len(actions)):
            self._step(actions[step])
            ended = self._terminated | self._truncated
            flags = alive & ended & (self._final_info[:, COLUMN["flag_get"]] != 0)
            if flags.any():
                lane = int(np.flatnonzero(flags)[0])
                return [*_path(begun[lane]), *actions[: step + 1, lane].tolist()]
            alive &= ~ended
            self._look(begun, actions[: step + 1], alive)
            alive &= lengths > step + 1
            if not alive.any():
                return None
        return None

    def _draw_actions(self) -> NDArray[np.int64]:
        """[TRIAL, LANES]: each drawn action is held for a while."""
        held = self.random.integers(*HOLDING, (TRIAL, LANES))
        drawn = self.random.choice(len(self.chances), (TRIAL, LANES), p=self.chances)
        change = np.arange(TRIAL)[:, None]
        # The draw in force at a step is the last one whose turn has begun.
        turn = np.cumsum(held, axis=0) - held
        order = (turn[None] <= change[:, None]).sum(axis=1) - 1
        return np.ascontiguousarray(np.take_along_axis(drawn, order, axis=0))

    def _step(self, actions: NDArray[np.int64]) -> None:
        self.vector.step(
            actions,
            self._obs,
            self._reward,
            self._terminated,
            self._truncated,
            self._info,
            self._final_obs,
            self._final_info,
        )

    def _look(
        self, begun: list[Place], actions: NDArray[np.int64], alive: NDArray[np.bool_]
    ) -> None:
        """Saves every lane that is where none has been, or that came there sooner."""
        state = self._info[:, COLUMN["player_state"]]
        keys = place_keys(self._info)
        for lane in np.flatnonzero(alive & (state == _engine.PlayerState.IN_CONTROL)).tolist():
            length = begun[lane].length + len(actions)
            known = self._places.get(keys[lane])
            if known is not None and self._list[known].length <= length:
                continue
            way = actions[:, lane].astype(np.uint8).tobytes()
            place = Place(self.vector.save(lane), begun[lane], way, length)
            if known is None:
                self._places[keys[lane]] = len(self._list)
                self._list.append(place)
                self._visits.append(0)
            else:
                self._list[known] = place


def place_keys(info: NDArray[np.int32]) -> list[tuple[int, ...]]:
    """The place where each lane is."""
    x, y = info[:, COLUMN["x_pos"]], info[:, COLUMN["y_pos"]]
    # A jump comes by sooner than Mario can stand there, and only who stands can take a pipe.
    standing = (info[:, COLUMN["float_state"]] == 0).astype(np.int32)
    on_screen = (x - info[:, COLUMN["screen_x"]]) // SCREEN
    place = x // WIDTH, y // HEIGHT, standing, on_screen
    columns = [*(info[:, COLUMN[name]] for name in MAP), *place]
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _path(place: Place) -> list[int]:
    """The actions that lead to a place from the start."""
    parts = []
    at: Place | None = place
    while at is not None:
        parts.append(at.actions)
        at = at.before
    return list(b"".join(reversed(parts)))
