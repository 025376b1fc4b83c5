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

from warpzone.env.backends import factory
from warpzone.env.backends.accounts import WRAPPED_X
from warpzone.env.backends.base_lanes import LocalLanes
from warpzone.env.backends.diagnostics import Diagnostics, construction
from warpzone.env.backends.interface import RAM_SIZE, Actions, BackendSpec, Bools, Bytes
from warpzone.env.infos import COLUMN, STATUS_NAMES

#: Steps in a row without x after which a hint is given.
HINT_AFTER = 200
#: Pixels in one call of `step` above which a move is a new place; their steps may be many frames.
_FURTHEST_JUMP = 64
_ALIASES = {"lives": "life", "timer": "time", "mario_y": "y_pos"}


class FactoryLanes(LocalLanes):
    """As many environments as there are lanes, all in this process."""

    def __init__(
        self, spec: BackendSpec, log: Diagnostics, report: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(spec)
        lanes = self.num_lanes
        self._log = log
        self._takes_stage = "stage" in factory.accepted(factory.find(spec.backend))
        #: Environments of each lane by stage; only one where the factory knows no stages.
        self._made: list[dict[int, Any]] = [{} for _ in range(lanes)]
        self._envs: list[Any] = [None] * lanes
        self._press: dict[int, Callable[[int], Any]] = {}
        self._place: list[tuple[Any, Any]] = [(None, None)] * lanes
        self._lives: list[Any] = [None] * lanes
        self._parse_fail = 0
        self._unread_in_a_row = 0
        self._hinted = False
        #: What each lane showed a frame ago, for the brighter of two.
        self._seen: list[Any] = [None] * lanes
        with ExitStack() as undo:
            undo.callback(self.close)
            for lane, stages in enumerate(spec.stages):
                with construction(lane, lanes, report):
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
        self._info[lane] = 0
        accounts = self._accounts
        accounts.start_stage[lane], accounts.start_delay[lane] = stage, frames
        for counter in (accounts.steps, accounts.stagnant, accounts.ground_covered):
            counter[lane] = 0
        accounts.had_flag[lane] = False
        self._seen[lane] = None
        accounts.score_last[lane] = _number(info.get("score"))
        x = factory.x_of(info, self._envs[lane], self._spec.ram_x)
        accounts.ground.furthest[lane, 0] = 0 if x is None else x
        self._place[lane] = (info.get("world"), info.get("stage"))
        self._lives[lane] = info.get("life", info.get("lives"))
        self._write(lane, info, x)
        return self._screen(picture)

    def _reset(self, lane: int) -> tuple[Any, Mapping[str, Any]]:
        picture, info = self._envs[lane].reset(seed=self._rng[lane].next() >> 33)
        return picture, info

    def _play(self, actions: Actions) -> Bools:
        cut = np.zeros(self.num_lanes, np.bool_)
        for lane in range(self.num_lanes):
            cut[lane] = self._play_lane(lane, self._masks[int(actions[lane])])
        return cut

    def _play_lane(self, lane: int, wanted: int) -> bool:
        """The frames of one step; whether the environment cut the episode short."""
        env, accounts = self._envs[lane], self._accounts
        picture: Any = None
        before: Any = None
        info: Mapping[str, Any] = {}
        cut = False
        x: int | None = None
        for _ in range(self._options.frame_skip):
            mask = self._buttons.next(lane, wanted, self._rng[lane])
            before = self._seen[lane]
            picture, reward, terminated, truncated, info = env.step(self._press[lane](mask))
            if self._options.max_last_two:
                self._seen[lane] = np.array(picture)
            accounts.gym_reward[lane] += float(reward)
            x = factory.x_of(info, env, self._spec.ram_x)
            if x is not None:
                self._explore(lane, x, info)
            flag = bool(info.get("flag_get"))
            lost = self._lost_life(lane, info)
            # An environment may go on, and show the flag for as long as it likes.
            accounts.flag[lane] |= flag and not accounts.had_flag[lane]
            accounts.had_flag[lane] = flag
            accounts.done[lane] = terminated or lost
            accounts.death[lane] |= (terminated or lost) and not flag
            cut = bool(truncated)
            if accounts.done[lane] or cut:
                break
        self._count_unread(lane, x)
        score = _number(info.get("score"))
        accounts.points[lane] = max(0, score - int(accounts.score_last[lane]))
        accounts.score_last[lane] = score
        image = self._picture.cut(self._screen(picture))
        if before is not None:
            image = np.maximum(image, self._picture.cut(self._screen(before)))
        self._observe(lane, image)
        self._write(lane, info, x)
        return cut

    def _explore(self, lane: int, x: int, info: Mapping[str, Any]) -> None:
        accounts, place = self._accounts, (info.get("world"), info.get("stage"))
        x = x if x < WRAPPED_X else 0
        gained = x - int(accounts.ground.furthest[lane, 0])
        if place != self._place[lane]:
            self._place[lane] = place
            accounts.ground.furthest[lane, 0] = x
            accounts.new_ground[lane] = True
        elif gained > 0:
            accounts.ground.furthest[lane, 0] = x
            accounts.new_ground[lane] = True
            accounts.pixels[lane] += gained if gained <= _FURTHEST_JUMP else 0

    def _lost_life(self, lane: int, info: Mapping[str, Any]) -> bool:
        before, now = self._lives[lane], info.get("life", info.get("lives"))
        self._lives[lane] = now
        if self._options.end != "life" or before is None or now is None:
            return False
        return int(now) < int(before)

    def _count_unread(self, lane: int, x: int | None) -> None:
        if x is not None:
            self._unread_in_a_row = 0
            return
        self._accounts.score_unread[lane] = True
        self._parse_fail += 1
        self._unread_in_a_row += 1
        if self._unread_in_a_row < HINT_AFTER or self._hinted:
            return
        self._hinted = True
        if not self._log.first("hinted"):
            return
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

    def _screen(self, observation: Any) -> Bytes:
        return factory.picture_of(observation, self._spec.backend)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float | np.number) else 0


def _whole(ram: Bytes | None) -> Bytes:
    whole = np.zeros(RAM_SIZE, np.uint8)
    if ram is not None:
        whole[: len(ram)] = ram
    return whole
