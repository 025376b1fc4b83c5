"""Lanes over emulators that this process advances frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpzone.env.backends import signals
from warpzone.env.backends.base_lanes import LocalLanes
from warpzone.env.backends.interface import (
    RAM_SIZE,
    WHOLE_GAME,
    Actions,
    BackendSpec,
    Bools,
    Bytes,
    Machine,
)


class MachineLanes(LocalLanes):
    """Plays as the engine's lanes do: same draws from a seed, same rewards, ends and infos."""

    def __init__(self, spec: BackendSpec, machines: Sequence[Machine]) -> None:
        super().__init__(spec)
        self._machines = list(machines)
        self._ram: Bytes = np.zeros((self.num_lanes, RAM_SIZE), np.uint8)
        #: Screens one frame ago, for the brighter of two.
        self._previous: list[Bytes | None] = [None] * self.num_lanes

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

    def _play(self, actions: Actions) -> Bools:
        """Frame by frame in all lanes. Those whose episode is over stand still."""
        options, accounts = self._options, self._accounts
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
        for index in range(self.num_lanes):
            self._observe(index, self._brighter(index))
        return np.zeros(self.num_lanes, np.bool_)

    def _advance(self, lane: int, wanted: int) -> None:
        machine = self._machines[lane]
        if self._options.max_last_two:
            self._previous[lane] = self._picture.cut(machine.screen())
        machine.advance(self._buttons.next(lane, wanted, self._rng[lane]))
        self._ram[lane] = machine.ram()

    def _start(self, lane: int, stage: int, frames: int) -> Bytes:
        self._place(lane, stage, 0)
        if not self._delay(lane, frames):
            # Standing still this long is fatal here; the episode starts without a delay instead.
            self._place(lane, stage, 0)
            frames = 0
        self._start_accounts(lane, stage, frames)
        self._previous[lane] = None
        signals.write_signals(self._ram[lane : lane + 1], self._info[lane : lane + 1])
        return self._machines[lane].screen()

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

    def _brighter(self, lane: int) -> Bytes:
        image, previous = self._picture.cut(self._machines[lane].screen()), self._previous[lane]
        return image if previous is None else np.maximum(image, previous)

    def _only(self, lane: int) -> Bools:
        only = np.zeros(self.num_lanes, np.bool_)
        only[lane] = True
        return only

    def _single(self, lane: int) -> bool:
        return bool(self._accounts.start_stage[lane] != WHOLE_GAME)
