"""Lanes over Gymnasium environments that are stepped as they are.

They say less than an emulator whose RAM is read: new ground is what x gains, a death is an end
without the flag, and what their info does not tell stays zero.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from warpzone import _engine
from warpzone.env.backends import factory
from warpzone.env.backends.base_lanes import LocalLanes
from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.events import Report, construction
from warpzone.env.backends.interface import RAM_SIZE, BackendSpec, Bytes
from warpzone.env.infos import COLUMN, STATUS_NAMES

#: Steps in a row without x after which a hint is given.
HINT_AFTER = 200
#: Pixels in one call of `step` above which a move is a new place; their steps may be many frames.
_FURTHEST_JUMP = 64
#: A maze's loop can set Mario back past the start of its map, where x wraps around: such an x is no
#: ground.
_WRAPPED_X = 0x8000
_ALIASES = {"lives": "life", "timer": "time", "mario_y": "y_pos"}


class FactoryLanes(LocalLanes):
    """As many environments as there are lanes, all in this process."""

    def __init__(self, spec: BackendSpec, log: Diagnostics, report: Report | None = None) -> None:
        super().__init__(spec)
        lanes = self.num_lanes
        self._log = log
        self._takes_stage = "stage" in factory.accepted(factory.find(spec.backend, spec.digest))
        #: Environments of each lane by stage; only one where the factory knows no stages.
        self._made: list[dict[int, Any]] = [{} for _ in range(lanes)]
        self._envs: list[Any] = [None] * lanes
        self._press: dict[int, Callable[[int], Any]] = {}
        self._place: list[tuple[Any, Any]] = [(None, None)] * lanes
        self._lives: list[Any] = [None] * lanes
        self._furthest = [0] * lanes
        self._score = [0] * lanes
        self._had_flag = [False] * lanes
        self._parse_fail = 0
        self._unread_in_a_row = 0
        self._hinted = False
        #: What each lane showed a frame ago, for the brighter of two.
        self._seen: list[Any] = [None] * lanes
        with ExitStack() as undo:
            undo.callback(self.close)
            for lane, stages in enumerate(spec.stages):
                with construction(spec.env(lane), spec.of, report):
                    self._make(lane, stages[0] if stages else -1)
            undo.pop_all()

    def ram(self, lanes: Sequence[int]) -> Bytes:
        """Copies of the RAM of some lanes; zeros where an environment shows none."""
        rams = [factory.ram_of(self._envs[lane]) for lane in lanes]
        return np.stack([_whole(ram) for ram in rams])

    def counters(self) -> dict[str, int]:
        """How often x could not be read."""
        return {"env_shaping_parse_fail": self._parse_fail}

    def close(self) -> None:
        """Closes the environments. Closing twice does no harm."""
        for made in self._made:
            while made:
                made.popitem()[1].close()

    def _make(self, lane: int, stage: int) -> None:
        key = stage if self._takes_stage else 0
        if key not in self._made[lane]:
            self._made[lane][key] = factory.make(self._spec, stage, self._log)
        self._envs[lane] = self._made[lane][key]
        self._press[lane] = factory.presser(self._envs[lane], self._spec)

    def _start(self, lane: int, stage: int, frames: int) -> Bytes:
        self._make(lane, stage)
        picture, info = self._reset(lane)
        frames = frames if 0 in self._masks else 0
        for _ in range(frames):
            picture, _, terminated, truncated, info = self._envs[lane].step(self._press[lane](0))
            if terminated or truncated:
                picture, info = self._reset(lane)
                frames = 0
                break
        self._seen[lane] = None
        self._had_flag[lane] = False
        self._score[lane] = _number(info.get("score"))
        x = factory.x_of(info, self._envs[lane], self._spec.ram_x)
        self._furthest[lane] = 0 if x is None else x
        self._place[lane] = (info.get("world"), info.get("stage"))
        self._lives[lane] = info.get("life", info.get("lives"))
        self._accounts[lane].begin_told(stage, frames, self._furthest[lane])
        self._info[lane] = 0
        self._write(lane, info, x)
        return self._screen(picture)

    def _reset(self, lane: int) -> tuple[Any, Mapping[str, Any]]:
        picture, info = self._envs[lane].reset(seed=self._accounts[lane].random() >> 33)
        return picture, info

    def _play(self, lane: int, action: int) -> tuple[float, bool, bool]:
        env, accounts = self._envs[lane], self._accounts[lane]
        totals = _engine.StepTotals()
        picture: Any = None
        before: Any = None
        info: Mapping[str, Any] = {}
        cut = False
        x: int | None = None
        paid = 0.0
        for _ in range(self._options.frame_skip):
            before = self._seen[lane]
            mask = accounts.press(action)
            picture, reward, terminated, truncated, info = env.step(self._press[lane](mask))
            if self._options.max_last_two:
                self._seen[lane] = np.array(picture)
            paid += float(reward)
            x = factory.x_of(info, env, self._spec.ram_x)
            if x is not None:
                self._explore(lane, x, info, totals)
            flag = bool(info.get("flag_get"))
            over = bool(terminated) or self._lost_life(lane, info)
            # An environment may go on, and show the flag for as long as it likes.
            totals.flag |= flag and not self._had_flag[lane]
            self._had_flag[lane] = flag
            totals.done = over
            totals.death |= over and not flag
            cut = bool(truncated)
            if over or cut:
                break
        totals.gym_reward = paid
        totals.score_unread = self._unread(x)
        score = _number(info.get("score"))
        totals.points = max(0, score - self._score[lane])
        self._score[lane] = score
        value, terminated, truncated = accounts.finish_told(totals, self._furthest[lane])
        self._write(lane, info, x)
        earlier = None if before is None else np.ascontiguousarray(self._screen(before))
        self._observe(lane, self._screen(picture), earlier)
        return value, terminated, truncated or (cut and not terminated)

    def _explore(
        self, lane: int, x: int, info: Mapping[str, Any], totals: _engine.StepTotals
    ) -> None:
        place = (info.get("world"), info.get("stage"))
        x = x if x < _WRAPPED_X else 0
        gained = x - self._furthest[lane]
        if place != self._place[lane]:
            self._place[lane] = place
            self._furthest[lane] = x
            totals.new_ground = True
        elif gained > 0:
            self._furthest[lane] = x
            totals.new_ground = True
            totals.pixels += gained if gained <= _FURTHEST_JUMP else 0

    def _lost_life(self, lane: int, info: Mapping[str, Any]) -> bool:
        before, now = self._lives[lane], info.get("life", info.get("lives"))
        self._lives[lane] = now
        if self._options.end != "life" or before is None or now is None:
            return False
        return int(now) < int(before)

    def _unread(self, x: int | None) -> bool:
        """Counts steps without x; hints at what to do when there are many."""
        if x is not None:
            self._unread_in_a_row = 0
            return False
        self._parse_fail += 1
        self._unread_in_a_row += 1
        if self._unread_in_a_row >= HINT_AFTER and not self._hinted:
            self._hinted = True
            if self._log.first("hinted"):
                self._hint()
        return True

    def _hint(self) -> None:
        ram_x = self._spec.ram_x
        advice = (
            f"RAM has no x at {ram_x.high:#06x} and {ram_x.low:#06x} either; check "
            "--ram-x-high-addr and --ram-x-low-addr"
            if ram_x.enabled
            else "--enable-ram-x-parse reads it from RAM"
        )
        print(
            f"[env][hint] {self._spec.backend} has not told x for {self._unread_in_a_row} steps, "
            f"so no distance is rewarded: its info lacks x_pos and metrics.mario_x; {advice}",
            file=sys.stderr,
            flush=True,
        )

    def _write(self, lane: int, info: Mapping[str, Any], x: int | None) -> None:
        row = self._info[lane]
        for name, value in info.items():
            column = COLUMN.get(_ALIASES.get(name, name))
            if column is not None and isinstance(value, int | float | np.number | np.bool_):
                row[column] = int(value)
        status = info.get("status")
        if status in STATUS_NAMES:
            row[COLUMN["status"]] = STATUS_NAMES.index(status)
        if x is not None:
            row[COLUMN["x_pos"]] = x
        self._accounts[lane].write_counters(row)

    def _screen(self, observation: Any) -> Bytes:
        return factory.picture_of(observation, self._spec.backend)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float | np.number) else 0


def _whole(ram: Bytes | None) -> Bytes:
    whole = np.zeros(RAM_SIZE, np.uint8)
    if ram is not None:
        whole[: len(ram)] = ram
    return whole
