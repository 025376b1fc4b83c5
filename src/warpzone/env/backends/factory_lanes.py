"""Lanes over Gymnasium environments that are stepped as they are.

They say less than an emulator whose RAM is read: new ground is what x gains, a death is an end
without the flag, and what their info does not tell stays zero.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from warpzone import _engine
from warpzone.env.actions import action_table
from warpzone.env.backends import factory
from warpzone.env.backends.accounts import Accounts
from warpzone.env.backends.buttons import Buttons
from warpzone.env.backends.diagnostics import Diagnostics, construction
from warpzone.env.backends.interface import (
    RAM_SIZE,
    Actions,
    BackendError,
    BackendSpec,
    Bools,
    Bytes,
    Floats,
    Ints,
    check_actions,
    refuse_restarts,
)
from warpzone.env.backends.picture import Picture
from warpzone.env.backends.rng import Rng, draw_stage
from warpzone.env.backends.signals import COLUMN
from warpzone.env.infos import STATUS_NAMES

#: Steps in a row without x after which a hint is given.
HINT_AFTER = 200
#: Pixels in one call of `step` above which a move is a new place; their steps may be many frames.
_FURTHEST_JUMP = 64
_ALIASES = {"lives": "life", "timer": "time", "mario_y": "y_pos"}


class FactoryLanes:
    """As many environments as there are lanes, all in this process."""

    def __init__(
        self, spec: BackendSpec, log: Diagnostics, report: Callable[[str], None] | None = None
    ) -> None:
        lanes = len(spec.stages)
        self._spec = spec
        self._log = log
        self._options = spec.options
        self._picture = Picture(spec.options)
        self._takes_stage = "stage" in factory.accepted(factory.find(spec.backend))
        #: Environments of each lane by stage; only one where the factory knows no stages.
        self._made: list[dict[int, Any]] = [{} for _ in range(lanes)]
        self._envs: list[Any] = [None] * lanes
        self._press: dict[int, Callable[[int], Any]] = {}
        self._rng = [Rng() for _ in range(lanes)]
        self._buttons = Buttons(lanes, spec.options)
        self._masks = action_table(spec.options.actions).masks
        self._stage_weights: list[float] = []
        self._accounts = Accounts(spec.options, lanes)
        self._place: list[tuple[Any, Any]] = [(None, None)] * lanes
        self._lives: list[Any] = [None] * lanes
        self._info: Ints = np.zeros((lanes, len(_engine.INFO_FIELDS)), np.int32)
        self._history: Bytes = np.zeros((lanes, *self.obs_shape), np.uint8)
        self._running: Bools = np.zeros(lanes, np.bool_)
        self._parse_fail = 0
        self._unread_in_a_row = 0
        self._hinted = False
        for lane, stages in enumerate(spec.stages):
            with construction(lane, lanes, report):
                self._make(lane, stages[0] if stages else -1)

    @property
    def num_lanes(self) -> int:
        """Games played here."""
        return len(self._made)

    @property
    def obs_shape(self) -> tuple[int, ...]:
        """Of one lane: the stack, oldest observation first."""
        return (self._options.frame_stack, *self._picture.shape)

    def seed(self, seeds: Sequence[int | None]) -> None:
        """One 64-bit seed for each lane; None leaves its random stream as it is."""
        for lane, seed in enumerate(seeds):
            if seed is not None:
                self._rng[lane] = Rng(seed)

    def reset(self, mask: Bools | None, obs: Bytes, info: Ints) -> None:
        """Starts new episodes where the mask is true, everywhere when None."""
        chosen = np.ones(self.num_lanes, np.bool_) if mask is None else mask
        for lane in np.flatnonzero(chosen):
            self._begin(int(lane))
        obs[:] = self._history
        info[chosen] = self._info[chosen]

    def step(
        self,
        actions: Actions,
        obs: Bytes,
        reward: Floats,
        terminated: Bools,
        truncated: Bools,
        info: Ints,
        final_obs: Bytes | None,
        final_info: Ints | None,
    ) -> None:
        """One step of every lane."""
        if not self._running.all():
            idle = int(np.flatnonzero(~self._running)[0])
            raise BackendError(f"lane {idle} must be reset before it is stepped")
        check_actions(actions, len(self._masks))
        self._accounts.begin_step()
        cut = np.zeros(self.num_lanes, np.bool_)
        for lane in range(self.num_lanes):
            cut[lane] = self._play(lane, self._masks[int(actions[lane])])
            self._buttons.finish_step(lane, self._info)
        reward[:], truncated[:] = self._accounts.finish_step()
        terminated[:] = self._accounts.done
        truncated |= cut & ~terminated
        self._accounts.write_counters(self._info)
        ended = terminated | truncated
        self._running &= ~ended
        if self._spec.autoreset and ended.any():
            if final_obs is not None and final_info is not None:
                final_obs[ended], final_info[ended] = self._history[ended], self._info[ended]
            for lane in np.flatnonzero(ended).tolist():
                self._begin(lane)
        obs[:], info[:] = self._history, self._info

    def set_reward_weights(self, weights: Sequence[float]) -> None:
        """Rewards of the steps from now on."""
        self._accounts.set_weights(weights)

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """Of the 32 stages, for all draws from now on; empty is all alike."""
        self._stage_weights = list(weights)

    def set_script(self, masks: bytes) -> None:
        """Buttons that every episode starts with from now on; empty is none."""
        self._buttons.set_script(masks)

    def force(self, lanes: Sequence[int], masks: bytes) -> None:
        """Buttons that some lanes press from now on, whatever their actions are."""
        self._buttons.force(lanes, masks)

    def set_restart_share(self, share: float) -> None:
        """Lanes cannot be saved here, so episodes begin at the start of their stage."""
        refuse_restarts(share)

    def take_shaping(self) -> list[float]:
        """Sums over all lanes since the last call, in the engine's order."""
        return self._accounts.take_shaping()

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

    def _begin(self, lane: int) -> None:
        rng = self._rng[lane]
        stage = draw_stage(self._spec.stages[lane], self._stage_weights, rng)
        low, high = self._options.delay
        frames = low + rng.below(high - low + 1)
        self._make(lane, stage)
        picture, info = self._start(lane)
        frames = frames if 0 in self._masks else 0
        for _ in range(frames):
            picture, _, terminated, truncated, info = self._envs[lane].step(self._press[lane](0))
            if terminated or truncated:
                picture, info = self._start(lane)
                frames = 0
                break
        self._info[lane] = 0
        accounts = self._accounts
        accounts.start_stage[lane], accounts.start_delay[lane] = stage, frames
        for counter in (accounts.steps, accounts.stagnant, accounts.ground_covered):
            counter[lane] = 0
        accounts.score_last[lane] = _number(info.get("score"))
        x = factory.x_of(info, self._envs[lane], self._spec.ram_x)
        accounts.ground.furthest[lane, 0] = 0 if x is None else x
        self._place[lane] = (info.get("world"), info.get("stage"))
        self._lives[lane] = info.get("life", info.get("lives"))
        first = self._picture.resize(self._picture.cut(self._screen(picture)))
        self._history[lane] = first
        self._write(lane, info, x)
        accounts.write_counters(self._info)
        self._buttons.begin(lane, self._info)
        self._running[lane] = True

    def _start(self, lane: int) -> tuple[Any, Mapping[str, Any]]:
        picture, info = self._envs[lane].reset(seed=self._rng[lane].next() >> 33)
        return picture, info

    def _play(self, lane: int, wanted: int) -> bool:
        """The frames of one step; whether the environment cut the episode short."""
        env, accounts = self._envs[lane], self._accounts
        picture: Any = None
        info: Mapping[str, Any] = {}
        cut = False
        x: int | None = None
        for _ in range(self._options.frame_skip):
            mask = self._buttons.next(lane, wanted, self._rng[lane])
            picture, reward, terminated, truncated, info = env.step(self._press[lane](mask))
            accounts.gym_reward[lane] += float(reward)
            x = factory.x_of(info, env, self._spec.ram_x)
            if x is not None:
                self._explore(lane, x, info)
            flag = bool(info.get("flag_get"))
            lost = self._lost_life(lane, info)
            accounts.flag[lane] |= flag
            accounts.done[lane] = terminated or lost
            accounts.death[lane] |= (terminated or lost) and not flag
            cut = bool(truncated)
            if accounts.done[lane] or cut:
                break
        self._count_unread(lane, x)
        score = _number(info.get("score"))
        accounts.points[lane] = max(0, score - int(accounts.score_last[lane]))
        accounts.score_last[lane] = score
        if self._options.frame_stack > 1:
            self._history[lane, :-1] = self._history[lane, 1:].copy()
        self._history[lane, -1] = self._picture.resize(self._picture.cut(self._screen(picture)))
        self._write(lane, info, x)
        return cut

    def _explore(self, lane: int, x: int, info: Mapping[str, Any]) -> None:
        accounts, place = self._accounts, (info.get("world"), info.get("stage"))
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
