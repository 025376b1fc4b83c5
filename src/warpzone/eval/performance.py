"""An agent at play, frame by frame, for videos and windows. It plays the same episodes as an
evaluation: the same decisions from the same starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table
from warpzone.env.infos import COLUMN, began
from warpzone.env.stages import stage_name
from warpzone.eval import evaluate as protocol
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.eval.evaluate import Chooser, evaluating
from warpzone.eval.policy import Policy
from warpzone.eval.whole_game import begins_anew, standing_of
from warpzone.model.agent import Agent

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Shot:
    """One lane at one frame."""

    case: Case
    screen: Image
    #: The newest observation that the network saw: its last decision was made with it.
    seen: Image
    action: int
    mask: int
    #: Probabilities of the policy, and the value.
    chances: NDArray[np.float32]
    value: float
    x: int
    furthest_x: int
    #: Empty while the episode runs; then `flag`, `death` or `stuck`.
    end: str = ""
    #: What the episode began as: `small`, `big`, `fire`, or `halfway`.
    began: str = "small"

    @property
    def stage(self) -> str:
        """`1-1`; the whole game is `game`."""
        return stage_name(self.case.stage) if self.case.stage >= 0 else "game"


class Performance:
    """Some cases played side by side. `last` is the newest shot of each."""

    def __init__(
        self,
        agent: Agent,
        config: TrainConfig,
        rom: bytes,
        native: _engine.NativeProgram | None,
        cases: Sequence[Case],
        *,
        seed: int = 0,
        stuck_after: int | None = None,
        start_power: str = "small",
        start_halfway: float = 0.0,
    ) -> None:
        self._agent = agent
        self._config = config
        self._rom = rom
        self._native = native
        self._cases = list(cases)
        self._seed = seed
        self._patience = protocol.STUCK_AFTER if stuck_after is None else stuck_after
        self._whole = self._cases[0].stage < 0
        self._start: dict[str, Any] = {
            "start_power": start_power,
            "start_halfway": start_halfway,
        }
        self._masks = action_table(config.actions).masks
        self.last: list[Shot] = []

    def frames(self) -> Iterator[list[Shot]]:
        """All lanes after each frame; those that have ended stay as they are. Scenes that the
        environment skips are not shown."""
        lanes = EvalLanes(
            self._config,
            self._rom,
            self._native,
            self._cases,
            frame_skip=1,
            time_limit=0,
            stagnation_limit=0,
            end="game_over" if self._whole else "life",
            **self._start,
        )
        try:
            with evaluating(self._agent), Policy(self._agent, lanes.first_frames) as policy:
                yield from self._play(lanes, policy)
        finally:
            lanes.close()

    def _play(self, lanes: EvalLanes, policy: Policy) -> Iterator[list[Shot]]:
        count = len(self._cases)
        chooser = Chooser(self._cases, self._seed)
        running = np.arange(count)
        frames = lanes.first_frames.copy()
        progress = _Progress(lanes.first_info)
        standing = standing_of(lanes.first_info)
        for step in range(protocol.STEP_LIMIT * (32 if self._whole else 1)):
            decided = policy.decide(running)
            actions = chooser.choose(decided.logits, running, step)
            chances = _softmax(decided.logits)
            if step == 0:
                self.last = [
                    self._shot(
                        lanes,
                        lane,
                        frames,
                        int(actions[lane]),
                        chances[lane],
                        float(decided.values[lane]),
                    )
                    for lane in range(count)
                ]
                yield list(self.last)
            for row, lane in enumerate(running.tolist()):
                action = int(actions[row])
                self.last[lane] = replace(
                    self.last[lane],
                    action=action,
                    mask=self._masks[action],
                    chances=chances[row],
                    value=float(decided.values[row]),
                    seen=frames[lane].copy(),
                )
            going = np.ones(len(running), np.bool_)
            before = standing.copy()
            for _ in range(self._config.frame_skip):
                moving = running[going]
                landing = lanes.step(np.ascontiguousarray(actions[going]), moving)
                frames[moving] = landing.frames
                progress.take(moving, landing.info)
                standing[moving] = standing_of(landing.info)
                ended = landing.terminated
                for row, lane in enumerate(moving.tolist()):
                    info = landing.info[row]
                    flag = bool(info[COLUMN["flag_get"]])
                    self.last[lane] = replace(
                        self.last[lane],
                        screen=lanes.vector.screen(lane),
                        x=int(info[COLUMN["x_pos"]]),
                        furthest_x=int(info[COLUMN["furthest_x"]]),
                        end=("flag" if flag else "death") if ended[row] else "",
                    )
                going[going] = ~ended
                yield list(self.last)
                if not going.any():
                    break
            stuck = progress.stuck(running[going], self._patience).tolist()
            for lane in stuck:
                self.last[lane] = replace(self.last[lane], end="stuck")
                going[running == lane] = False
            acted = actions[going]
            running = running[going]
            if not len(running):
                # The last frame was shown before the end was known.
                if stuck:
                    yield list(self.last)
                return
            policy.observe(running, frames[running], acted)
            if self._whole:
                anew = running[begins_anew(self._config, before[running], standing[running])]
                policy.begin(anew, frames[anew])

    def _shot(
        self,
        lanes: EvalLanes,
        lane: int,
        frames: Image,
        action: int,
        chances: NDArray[np.float32],
        value: float,
    ) -> Shot:
        info = lanes.first_info[lane]
        return Shot(
            case=self._cases[lane],
            screen=lanes.vector.screen(lane),
            seen=frames[lane].copy(),
            action=action,
            mask=self._masks[action],
            chances=chances,
            value=value,
            x=int(info[COLUMN["x_pos"]]),
            furthest_x=int(info[COLUMN["furthest_x"]]),
            began=began(int(info[COLUMN["power"]]), int(info[COLUMN["restart"]])),
        )


class _Progress:
    """New ground by steps, which the engine counts by frames here: its steps are frames."""

    def __init__(self, info: NDArray[np.int32]) -> None:
        self._mark = self._of(info)
        self._fresh = np.zeros(len(info), np.bool_)
        self._since = np.zeros(len(info), np.int64)
        self._seen: list[dict[tuple[int, ...], int]] = [
            {tuple(mark[:-1]): mark[-1]} for mark in self._mark.tolist()
        ]

    @staticmethod
    def _of(info: NDArray[np.int32]) -> NDArray[np.int32]:
        names = ("world", "stage", "area_type", "area_index", "furthest_x")
        return info[:, [COLUMN[name] for name in names]]

    def take(self, lanes: NDArray[np.int64], info: NDArray[np.int32]) -> None:
        """Results of one frame in all lanes."""
        for lane, mark in zip(lanes.tolist(), self._of(info).tolist(), strict=True):
            place, x = tuple(mark[:-1]), mark[-1]
            if x > self._seen[lane].get(place, -1):
                self._seen[lane][place] = x
                self._fresh[lane] = True

    def stuck(self, lanes: NDArray[np.int64], patience: int) -> NDArray[np.int64]:
        """Closes a step; lanes that have been without new ground for too long."""
        self._since[lanes] = np.where(self._fresh[lanes], 0, self._since[lanes] + 1)
        self._fresh[lanes] = False
        return lanes[self._since[lanes] >= patience]


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    shares: NDArray[np.float32] = raised / raised.sum(-1, keepdims=True)
    return shares
