"""The lanes of an evaluation: one for each case, stepped until its episode ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.collect.lanes import lane_options
from warpzone.config import TrainConfig
from warpzone.env.infos import COLUMN
from warpzone.env.stages import stage_name
from warpzone.eval.cases import Case
from warpzone.eval.chance import delay_seeds
from warpzone.eval.policy import cores


class Landing(NamedTuple):
    """Results of a step of some lanes, in the given order."""

    frames: NDArray[np.uint8]
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    info: NDArray[np.int32]


def without_middle(
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    stages: Sequence[int],
) -> list[str]:
    """The stages among these that have no halfway page: their episodes begin at the door."""
    cases = [Case(stage, "argmax", 0) for stage in dict.fromkeys(stages)]
    lanes = EvalLanes(config, rom, native, cases, start_halfway=1.0)
    lanes.close()
    began = lanes.first_info[:, COLUMN["restart"]].tolist()
    return [
        stage_name(case.stage)
        for case, restart in zip(cases, began, strict=True)
        if restart != _engine.HALFWAY_RESTART
    ]


class EvalLanes:
    """One vector of lanes, each with the stage and start delay of its case. Lanes are never
    reset: a lane that has ended is not stepped any more."""

    def __init__(
        self,
        config: TrainConfig,
        rom: bytes,
        native: _engine.NativeProgram | None,
        cases: Sequence[Case],
        *,
        delays: tuple[int, int] | None = None,
        **changes: Any,
    ) -> None:
        """delays: the range of start delays, of which each lane draws its own (default: that of
        the cases); a saved lane fits only where this is the same."""
        count = len(cases)
        wanted = [case.start_delay for case in cases]
        delays = (min(wanted), max(wanted)) if delays is None else delays
        self.whole_game = all(case.stage < 0 for case in cases)
        options = lane_options(
            config,
            **{
                "stages": "game"
                if self.whole_game
                else [[stage_name(case.stage)] for case in cases],
                "start_delay": delays,
                "sticky": 0.0,
                **changes,
            },
        )
        self.vector = options.make_vector(
            rom,
            count,
            autoreset=_engine.Autoreset.DISABLED,
            native=native,
            num_threads=min(config.num_threads or cores(), count),
        )
        height, width = self.vector.obs_shape[-2:]
        self._frames = np.zeros((count, 1, height, width), np.uint8)
        self._rewards = np.zeros(count, np.float32)
        self._ends = np.zeros((2, count), np.bool_)
        self._info = np.zeros((count, len(_engine.INFO_FIELDS)), np.int32)
        self._lanes = np.zeros(count, np.int64)
        with ExitStack() as undo:
            undo.callback(self.vector.close)
            self._start(rom, native, wanted, delays)
            undo.pop_all()

    def _start(
        self,
        rom: bytes,
        native: _engine.NativeProgram | None,
        wanted: Sequence[int],
        delays: tuple[int, int],
    ) -> None:
        stages = "game" if self.whole_game else "1-1"
        seeds = delay_seeds(rom, native, stages, range(delays[0], delays[1] + 1))
        self.vector.seed([seeds[delay] for delay in wanted])
        self.vector.reset(None, self._frames, self._info)
        #: [lanes, height, width].
        self.first_frames = self._frames[:, 0].copy()
        #: The info rows that the episodes start with.
        self.first_info = self._info.copy()
        drawn = self._info[:, COLUMN["start_delay"]]
        # Where the game would end meanwhile, the engine starts without a delay.
        wrong = np.flatnonzero((drawn != np.array(wanted)) & (drawn != 0))
        if len(wrong):
            lane = int(wrong[0])
            raise RuntimeError(
                f"a lane was to start after {wanted[lane]} frames and started after {drawn[lane]}"
            )

    def step(self, actions: NDArray[np.int64], lanes: NDArray[np.int64]) -> Landing:
        """Steps these lanes; the arrays are written again by the next call."""
        count = len(lanes)
        finished = self._lanes[:count]
        self.vector.send(actions, np.ascontiguousarray(lanes, np.int64))
        self.vector.recv(
            self._frames[:count],
            self._rewards[:count],
            self._ends[0, :count],
            self._ends[1, :count],
            self._info[:count],
            finished,
            None,
            None,
        )
        # Lanes come back as they finish, and `lanes` rises.
        order = np.argsort(finished)
        return Landing(
            self._frames[order, 0],
            self._rewards[order],
            self._ends[0, order],
            self._ends[1, order],
            self._info[order],
        )

    def close(self) -> None:
        """Ends the engine's threads."""
        self.vector.close()
