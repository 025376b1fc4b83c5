"""Lanes over emulators that this process advances frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpzone import _engine
from warpzone.env.actions import action_table
from warpzone.env.backends import signals
from warpzone.env.backends.accounts import Accounts
from warpzone.env.backends.buttons import Buttons
from warpzone.env.backends.interface import (
    RAM_SIZE,
    WHOLE_GAME,
    Actions,
    BackendError,
    BackendSpec,
    Bools,
    Bytes,
    Floats,
    Ints,
    Machine,
    check_actions,
    refuse_restarts,
)
from warpzone.env.backends.picture import Picture
from warpzone.env.backends.rng import Rng, draw_stage


class MachineLanes:
    """Plays as the engine's lanes do: same draws from a seed, same rewards, ends and infos."""

    def __init__(self, spec: BackendSpec, machines: Sequence[Machine]) -> None:
        lanes = len(machines)
        self._spec = spec
        self._options = spec.options
        self._machines = list(machines)
        self._masks = action_table(spec.options.actions).masks
        self._picture = Picture(spec.options)
        self._accounts = Accounts(spec.options, lanes)
        self._rng = [Rng() for _ in range(lanes)]
        self._buttons = Buttons(lanes, spec.options)
        self._stage_weights: list[float] = []
        self._ram: Bytes = np.zeros((lanes, RAM_SIZE), np.uint8)
        self._info: Ints = np.zeros((lanes, len(_engine.INFO_FIELDS)), np.int32)
        self._history: Bytes = np.zeros((lanes, *self.obs_shape), np.uint8)
        self._running: Bools = np.zeros(lanes, np.bool_)
        #: Screens one frame ago, for the brighter of two.
        self._previous: list[Bytes | None] = [None] * lanes

    @property
    def num_lanes(self) -> int:
        """Games played here."""
        return len(self._machines)

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
        self._play(actions)
        reward[:], truncated[:] = self._accounts.finish_step()
        terminated[:] = self._accounts.done
        self._accounts.write_counters(self._info)
        for lane in range(self.num_lanes):
            self._buttons.finish_step(lane, self._info)
            self._observe(lane)
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
        """Copies of the RAM of some lanes."""
        return np.stack([np.array(self._machines[lane].ram(), np.uint8) for lane in lanes])

    def counters(self) -> dict[str, int]:
        """Nothing goes wrong here that is dealt with."""
        return {}

    def close(self) -> None:
        """Frees the emulators. Closing twice does no harm."""
        while self._machines:
            self._machines.pop().close()

    def _play(self, actions: Actions) -> None:
        """The frames of one step. Lanes whose episode is over stand still."""
        options, accounts = self._options, self._accounts
        accounts.begin_step()
        active = np.ones(self.num_lanes, np.bool_)
        for frame in range(options.frame_skip):
            for lane in np.flatnonzero(active):
                self._advance(int(lane), self._masks[int(actions[lane])])
            done = accounts.frame(self._ram, active)
            # The info is that of the moment before a scene is skipped.
            write = active if frame + 1 == options.frame_skip else done
            if write.any():
                rows = self._info[write]
                signals.write_signals(self._ram[write], rows)
                self._info[write] = rows
                accounts.score(self._ram, write)
            active &= ~done
            if options.skip_cutscenes:
                for lane in np.flatnonzero(active):
                    self._machines[lane].skip_scenes(self._single(int(lane)))

    def _advance(self, lane: int, wanted: int) -> None:
        machine = self._machines[lane]
        if self._options.max_last_two:
            self._previous[lane] = self._picture.cut(machine.screen())
        machine.advance(self._buttons.next(lane, wanted, self._rng[lane]))
        self._ram[lane] = machine.ram()

    def _begin(self, lane: int) -> None:
        rng, stages = self._rng[lane], self._spec.stages[lane]
        stage = draw_stage(stages, self._stage_weights, rng)
        low, high = self._options.delay
        frames = low + rng.below(high - low + 1)
        self._place(lane, stage, 0)
        if not self._delay(lane, frames):
            # Standing still this long is fatal here; the episode starts without a delay instead.
            self._place(lane, stage, 0)
            frames = 0
        self._start_accounts(lane, stage, frames)
        self._previous[lane] = None
        first = self._picture.resize(self._picture.cut(self._machines[lane].screen()))
        self._history[lane] = first
        row = self._info[lane : lane + 1]
        signals.write_signals(self._ram[lane : lane + 1], row)
        self._accounts.write_counters(self._info)
        self._buttons.begin(lane, self._info)
        self._running[lane] = True

    def _place(self, lane: int, stage: int, frames: int) -> None:
        self._machines[lane].start(stage)
        self._ram[lane] = self._machines[lane].ram()
        self._start_accounts(lane, stage, frames)

    def _start_accounts(self, lane: int, stage: int, frames: int) -> None:
        self._accounts.start_stage[lane] = stage
        self._accounts.start_delay[lane] = frames
        self._accounts.begin(self._ram, self._only(lane))

    def _delay(self, lane: int, frames: int) -> bool:
        """False when the game ended during the delay."""
        machine, only = self._machines[lane], self._only(lane)
        for _ in range(frames):
            machine.advance(0)
            self._ram[lane] = machine.ram()
            if self._accounts.frame(self._ram, only)[lane]:
                return False
            if self._options.skip_cutscenes:
                machine.skip_scenes(self._single(lane))
                self._ram[lane] = machine.ram()
        return True

    def _observe(self, lane: int) -> None:
        image = self._picture.cut(self._machines[lane].screen())
        previous = self._previous[lane]
        if previous is not None:
            image = np.maximum(image, previous)
        if self._options.frame_stack > 1:
            self._history[lane, :-1] = self._history[lane, 1:].copy()
        self._history[lane, -1] = self._picture.resize(image)

    def _only(self, lane: int) -> Bools:
        only = np.zeros(self.num_lanes, np.bool_)
        only[lane] = True
        return only

    def _single(self, lane: int) -> bool:
        return bool(self._accounts.start_stage[lane] != WHOLE_GAME)
