"""Evaluation of the whole game: from 1-1 with three lives.

The agent is told where a stage or a life begins: there it begins anew, as in the episodes that it
was trained with. Its memory was never carried from one of those to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.config import TrainConfig
from warpzone.env.infos import COLUMN
from warpzone.env.stages import parse_stages, stage_name
from warpzone.eval.cases import DELAYS, Case
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.eval.evaluate import Chooser, evaluating
from warpzone.eval.policy import Policy
from warpzone.model.agent import Agent

#: Steps without new ground that end a game; each new stage and each new life is new ground.
STUCK_AFTER = 400
#: All 32 stages at the pace of the game's clock.
STEP_LIMIT = 32 * 2500
#: Fields of infos that say which stage is played with which life.
STANDING = ("world", "stage", "life")


@dataclass(frozen=True)
class Game:
    """One game."""

    policy: str
    start_delay: int
    #: Where it ended.
    stage: str
    x: int
    #: Stages entered beyond the first, warps counted as one.
    stages_cleared: int
    won: bool
    #: `won`, `game over` or `stuck`.
    reason: str
    steps: int
    score: int


def play_games(
    agent: Agent,
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    *,
    policies: Sequence[str],
    delays: Sequence[int] = DELAYS,
    seed: int = 0,
    stuck_after: int = STUCK_AFTER,
    start_power: str = "small",
) -> list[Game]:
    """Games from power-on, three lives, start delay before the first stage."""
    cases = [Case(-1, policy, delay) for delay in delays for policy in policies]
    lanes = EvalLanes(
        config,
        rom,
        native,
        cases,
        end="game_over",
        time_limit=STEP_LIMIT,
        stagnation_limit=stuck_after,
        start_power=start_power,
    )
    chooser = Chooser(cases, seed)
    running = np.arange(len(cases))
    entered = np.zeros(len(cases), np.int64)
    place, standing = stages_of(lanes.first_info), standing_of(lanes.first_info)
    games: list[Game | None] = [None] * len(cases)
    with evaluating(agent), closing(lanes), Policy(agent, lanes.first_frames) as policy:
        for step in range(STEP_LIMIT):
            actions = chooser.choose(policy.decide(running).logits, running, step)
            landing = lanes.step(actions, running)
            now = stages_of(landing.info)
            entered[running] += now > place[running]
            place[running] = np.maximum(now, place[running])
            ended = landing.terminated | landing.truncated
            for row in np.flatnonzero(ended):
                lane = int(running[row])
                info = dict(zip(COLUMN, landing.info[row].tolist(), strict=True))
                over = is_over(landing.info[row])
                won = bool(landing.terminated[row]) and not over
                games[lane] = Game(
                    policy=cases[lane].policy,
                    start_delay=cases[lane].start_delay,
                    stage=stage_name(int(place[lane])),
                    x=info["x_pos"],
                    stages_cleared=int(entered[lane]) + int(won),
                    won=won,
                    reason="won" if won else "game over" if over else "stuck",
                    steps=step + 1,
                    score=info["score"],
                )
            running, on = running[~ended], ~ended
            if not len(running):
                break
            frames, after = landing.frames[on], standing_of(landing.info[on])
            policy.observe(running, frames, actions[on])
            anew = begins_anew(config, standing[running], after)
            policy.begin(running[anew], frames[anew])
            standing[running] = after
    return [game for game in games if game is not None]


def stages_of(info: NDArray[np.int32]) -> NDArray[np.int64]:
    """The stage of each row of infos as 0..31."""
    world, stage = info[:, COLUMN["world"]], info[:, COLUMN["stage"]]
    return ((world - 1) % 8 * 4 + (stage - 1) % 4).astype(np.int64)


def remembers(config: TrainConfig) -> bool:
    """Whether an agent keeps its memory from stage to stage and over lost lives: whether it was
    trained on whole games."""
    return not parse_stages(config.stages)


def standing_of(info: NDArray[np.int32]) -> NDArray[np.int32]:
    """`STANDING` of each row of infos."""
    return info[:, [COLUMN[name] for name in STANDING]]


def begins_anew(
    config: TrainConfig, before: NDArray[np.int32], after: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """The lanes of whole games in which the agent begins anew after a step, by their `STANDING`
    before and after it: they have come to another stage, or a life is lost. A life that is won is
    no beginning."""
    if remembers(config):
        return np.zeros(len(after), np.bool_)
    moved = (after[:, :2] != before[:, :2]).any(-1)
    return np.asarray(moved | (after[:, 2] < before[:, 2]))


def is_over(info: NDArray[np.int32]) -> bool:
    """Whether the last life was lost; of a game that has ended otherwise the princess is saved."""
    return bool(info[COLUMN["game_over"]] == 1 or info[COLUMN["life"]] == 255)
