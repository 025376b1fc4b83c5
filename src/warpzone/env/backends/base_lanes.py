"""What lanes of all back-ends have in common: first of any, then of those in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from warpzone import _engine
from warpzone.env.actions import action_table
from warpzone.env.backends.interface import (
    Actions,
    BackendError,
    BackendSpec,
    Bools,
    Bytes,
    Floats,
    Ints,
)


class BackendLanes(ABC):
    """The lanes of a spec, wherever they play."""

    def __init__(self, spec: BackendSpec) -> None:
        self._spec = spec
        self._options = spec.options
        self._masks = action_table(spec.options.actions).masks
        #: Games played here.
        self.num_lanes = len(spec.stages)
        #: Of one lane: the stack, oldest observation first.
        self.obs_shape: tuple[int, ...] = (
            spec.options.frame_stack,
            *spec.options.observe_spec().shape,
        )

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
    """Lanes in this process. Draws, buttons, rewards, ends and pictures are the engine's; how games
    are started and played is left to the back-end."""

    def __init__(self, spec: BackendSpec) -> None:
        super().__init__(spec)
        lanes = self.num_lanes
        config = spec.options.lane_config()
        self._accounts = [_engine.LaneAccounts(config) for _ in range(lanes)]
        self._screens = _engine.Screens(config.observe, spec.options.simd)
        self._info: Ints = np.zeros((lanes, len(_engine.INFO_FIELDS)), np.int32)
        self._history: Bytes = np.zeros((lanes, *self.obs_shape), np.uint8)
        self._running: Bools = np.zeros(lanes, np.bool_)

    def seed(self, seeds: Sequence[int | None]) -> None:
        """One 64-bit seed for each lane; None leaves its random stream as it is."""
        for accounts, seed in zip(self._accounts, seeds, strict=True):
            if seed is not None:
                accounts.seed(seed)

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
        for lane, action in enumerate(actions.tolist()):
            reward[lane], terminated[lane], truncated[lane] = self._play(lane, action)
        ended = terminated | truncated
        self._running &= ~ended
        if self._spec.autoreset and ended.any():
            if final_obs is not None and final_info is not None:
                final_obs[ended], final_info[ended] = self._history[ended], self._info[ended]
            self._begin_all(np.flatnonzero(ended).tolist())
        obs[:], info[:] = self._history, self._info

    def set_reward_weights(self, weights: _engine.RewardWeights) -> None:
        """Rewards of the steps from now on."""
        for accounts in self._accounts:
            accounts.set_reward_weights(weights)

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """Of the 32 stages, for all draws from now on; empty is all alike."""
        for accounts in self._accounts:
            accounts.set_stage_weights(weights)

    def set_script(self, masks: bytes) -> None:
        """Buttons that every episode starts with from now on; empty is none."""
        for accounts in self._accounts:
            accounts.set_script(masks)

    def force(self, lanes: Sequence[int], masks: bytes) -> None:
        """Buttons that some lanes press from now on, whatever their actions are."""
        for lane in lanes:
            self._accounts[lane].force(masks)

    def take_shaping(self) -> list[float]:
        """Sums over all lanes since the last call, in the engine's order."""
        each = [accounts.take_shaping() for accounts in self._accounts]
        return [sum(values) for values in zip(*each, strict=True)]

    @abstractmethod
    def _play(self, lane: int, action: int) -> tuple[float, bool, bool]:
        """The frames of one step, with its info and observation. Returns its reward and whether the
        episode is terminated or truncated."""

    @abstractmethod
    def _start(self, lane: int, stage: int, frames: int) -> Bytes:
        """A game at the start of a stage after a delay, with its accounts and its info. Returns
        the screen."""

    def _begin_all(self, lanes: Sequence[int]) -> None:
        for lane in lanes:
            stage, frames = self._accounts[lane].draw(self._spec.stages[lane])
            screen = self._start(lane, stage, frames)
            self._history[lane] = self._screens.observe(np.ascontiguousarray(screen))
            self._running[lane] = True

    def _shown(self) -> tuple[Bytes, Ints]:
        return self._history, self._info

    def _observe(self, lane: int, screen: Bytes, previous: Bytes | None) -> None:
        """Puts a screen, or the brighter of two, behind the older ones of the stack."""
        if self._options.frame_stack > 1:
            self._history[lane, :-1] = self._history[lane, 1:].copy()
        self._history[lane, -1] = self._screens.observe(np.ascontiguousarray(screen), previous)
