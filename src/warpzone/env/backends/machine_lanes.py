"""Lanes over emulators that this process advances frame by frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from warpzone.env.backends.base_lanes import LocalLanes
from warpzone.env.backends.interface import WHOLE_GAME, BackendSpec, Bytes, Machine


class MachineLanes(LocalLanes):
    """Plays as the engine's lanes do: same draws from a seed, same rewards, ends and infos."""

    def __init__(self, spec: BackendSpec, machines: Sequence[Machine]) -> None:
        super().__init__(spec)
        self._machines = list(machines)
        self._single_stage = [True] * self.num_lanes

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

    def _play(self, lane: int, action: int) -> tuple[float, bool, bool]:
        machine, accounts = self._machines[lane], self._accounts[lane]
        previous: Bytes | None = None
        for frame in range(self._options.frame_skip):
            if self._options.max_last_two:
                previous = np.array(machine.screen())
            machine.advance(accounts.press(action))
            if accounts.frame(machine.ram(), last=frame + 1 == self._options.frame_skip):
                break
            self._skip_scenes(lane)
        result = accounts.finish()
        accounts.write_info(self._info[lane])
        self._observe(lane, machine.screen(), previous)
        return result

    def _start(self, lane: int, stage: int, frames: int) -> Bytes:
        machine, accounts = self._machines[lane], self._accounts[lane]
        self._single_stage[lane] = stage != WHOLE_GAME
        machine.start(stage)
        accounts.begin(machine.ram(), stage, 0)
        if not self._delay(lane, frames):
            # Standing still this long is fatal here; the episode starts without a delay instead.
            machine.start(stage)
            frames = 0
        accounts.begin(machine.ram(), stage, frames)
        accounts.write_info(self._info[lane])
        return machine.screen()

    def _delay(self, lane: int, frames: int) -> bool:
        """False when the game ended during the delay."""
        machine = self._machines[lane]
        for _ in range(frames):
            machine.advance(0)
            if self._accounts[lane].frame(machine.ram(), last=False):
                return False
            self._skip_scenes(lane)
        return True

    def _skip_scenes(self, lane: int) -> None:
        if self._options.skip_cutscenes:
            self._machines[lane].skip_scenes(self._single_stage[lane])
