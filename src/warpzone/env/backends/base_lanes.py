"""What lanes of all back-ends have in common: first of any, then of those in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from warpzone import _engine
from warpzone.env.actions import action_table
from warpzone.env.backends.accounts import Accounts
from warpzone.env.backends.buttons import Buttons
from warpzone.env.backends.interface import (
    Actions,
    BackendError,
    BackendSpec,
    Bools,
    Bytes,
    Floats,
    Ints,
)
from warpzone.env.backends.picture import Picture
from warpzone.env.backends.rng import Rng, draw_stage


class BackendLanes(ABC):
    """The lanes of a spec, wherever they play."""

    def __init__(self, spec: BackendSpec) -> None:
        self._spec = spec
        self._options = spec.options
        self._masks = action_table(spec.options.actions).masks
        self._picture = Picture(spec.options)
        #: Games played here.
        self.num_lanes = len(spec.stages)
        #: Of one lane: the stack, oldest observation first.
        self.obs_shape: tuple[int, ...] = (spec.options.frame_stack, *self._picture.shape)

    def reset(self, mask: Bools | None, obs: Bytes, info: Ints) -> None:
        """Starts new episodes where the mask is true, everywhere when None."""
        chosen = np.ones(self.num_lanes, np.bool_) if mask is None else mask
        self._begin_all(np.flatnonzero(chosen).tolist())
        shown_obs, shown_info = self._shown()
        obs[:] = shown_obs
        info[chosen] = shown_info[chosen]

    def set_restart_share(self, share: float) -> None:
        """Lanes cannot be saved here, so episodes begin at the start of their stage."""
        if share > 0:
            raise BackendError(
                "restart points need lanes that can be saved; use the native back-end"
            )

    def _check_actions(self, actions: Actions) -> None:
        """Refuses ids that are no actions, before any lane has moved."""
        count = len(self._masks)
        if len(actions) and not 0 <= int(actions.min()) <= int(actions.max()) < count:
            raise ValueError(f"actions must be in 0..{count - 1}, and are {actions.tolist()}")

    @abstractmethod
    def _begin_all(self, lanes: Sequence[int]) -> None:
        """New episodes in these lanes."""

    @abstractmethod
    def _shown(self) -> tuple[Bytes, Ints]:
        """Observations and infos of all lanes, as they are now."""


class LocalLanes(BackendLanes):
    """Lanes in this process. Seeds, delays, buttons, rewards and ends are as in the engine's lanes;
    how a game is started and played is left to the back-end."""

    def __init__(self, spec: BackendSpec) -> None:
        super().__init__(spec)
        lanes = self.num_lanes
        self._accounts = Accounts(spec.options, lanes)
        self._rng = [Rng() for _ in range(lanes)]
        self._buttons = Buttons(lanes, spec.options)
        self._stage_weights: list[float] = []
        self._info: Ints = np.zeros((lanes, len(_engine.INFO_FIELDS)), np.int32)
        self._history: Bytes = np.zeros((lanes, *self.obs_shape), np.uint8)
        self._running: Bools = np.zeros(lanes, np.bool_)

    def seed(self, seeds: Sequence[int | None]) -> None:
        """One 64-bit seed for each lane; None leaves its random stream as it is."""
        for lane, seed in enumerate(seeds):
            if seed is not None:
                self._rng[lane] = Rng(seed)

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
        self._check_actions(actions)
        self._accounts.begin_step()
        cut = self._play(actions)
        for lane in range(self.num_lanes):
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
            self._begin_all(np.flatnonzero(ended).tolist())
        obs[:], info[:] = self._history, self._info

    def set_reward_weights(self, weights: _engine.RewardWeights) -> None:
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

    def take_shaping(self) -> list[float]:
        """Sums over all lanes since the last call, in the engine's order."""
        return self._accounts.take_shaping()

    @abstractmethod
    def _play(self, actions: Actions) -> Bools:
        """The frames of one step: accounts, infos and observations of all lanes. Returns where the
        game itself cut an episode short."""

    @abstractmethod
    def _start(self, lane: int, stage: int, frames: int) -> Bytes:
        """A game at the start of a stage after a delay, with its accounts and its info. Returns
        the screen."""

    def _begin_all(self, lanes: Sequence[int]) -> None:
        for lane in lanes:
            rng = self._rng[lane]
            stage = draw_stage(self._spec.stages[lane], self._stage_weights, rng)
            low, high = self._options.delay
            screen = self._start(lane, stage, low + rng.below(high - low + 1))
            self._history[lane] = self._picture.resize(self._picture.cut(screen))
            self._accounts.write_counters(self._info)
            self._buttons.begin(lane, self._info)
            self._running[lane] = True

    def _shown(self) -> tuple[Bytes, Ints]:
        return self._history, self._info

    def _observe(self, lane: int, image: Bytes) -> None:
        """Puts a picture, already cut, behind the older ones of the stack."""
        if self._options.frame_stack > 1:
            self._history[lane, :-1] = self._history[lane, 1:].copy()
        self._history[lane, -1] = self._picture.resize(image)
