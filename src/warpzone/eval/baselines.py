"""What no learning reaches: a random and a scripted player, by the protocol of evaluations.

They play with the agent's own actions and frame skip, from the same starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from warpzone import _engine
from warpzone.config import TrainConfig
from warpzone.env.actions import BUTTONS, action_table
from warpzone.env.stages import parse_stages
from warpzone.eval.cases import BASELINES, DELAYS, Case, Outcome, make_cases
from warpzone.eval.chance import uniform
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.eval.evaluate import STEP_LIMIT, STUCK_AFTER, TOGETHER, outcome_of

#: Frames in which the scripted player holds the jump, and those in which it lets go: with the
#: button held on, Mario jumps only once.
HELD, RELEASED = 28, 4


def play_baselines(
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    *,
    stages: str | None = None,
    delays: Sequence[int] = DELAYS,
    seed: int = 0,
    stuck_after: int = STUCK_AFTER,
    start_power: str = "small",
    start_halfway: float = 0.0,
) -> list[Outcome]:
    """Plays every stage from every start delay with both. The same every time."""
    cases = make_cases(parse_stages(stages or config.stages) or (0,), BASELINES, delays)
    outcomes: list[Outcome] = []
    for first in range(0, len(cases), TOGETHER):
        part = cases[first : first + TOGETHER]
        lanes = EvalLanes(
            config,
            rom,
            native,
            part,
            time_limit=STEP_LIMIT,
            stagnation_limit=stuck_after,
            start_power=start_power,
            start_halfway=start_halfway,
        )
        outcomes += _play(config, lanes, part, seed)
    return outcomes


def _play(config: TrainConfig, lanes: EvalLanes, cases: Sequence[Case], seed: int) -> list[Outcome]:
    table = action_table(config.actions).masks
    random = np.array([case.policy == "random" for case in cases])
    keys = np.array([case.key for case in cases], np.uint64) ^ np.uint64(seed % 2**32 << 32)
    returns = np.zeros(len(cases))
    outcomes: list[Outcome | None] = [None] * len(cases)
    running = np.arange(len(cases))
    with closing(lanes):
        for step in range(STEP_LIMIT):
            chance = uniform(keys[running], step, len(table))
            scripted = scripted_action(table, step * config.frame_skip)
            actions = np.where(random[running], chance.argmax(-1), scripted)
            landing = lanes.step(actions, running)
            returns[running] += landing.rewards
            ended = landing.terminated | landing.truncated
            for row in np.flatnonzero(ended):
                lane = int(running[row])
                total = float(returns[lane])
                outcomes[lane] = outcome_of(cases[lane], landing, int(row), step + 1, total)
            running = running[~ended]
            if not len(running):
                break
    return [outcome for outcome in outcomes if outcome is not None]


def scripted_action(masks: bytes, frame: int) -> int:
    """The action that is most like running to the right, jumping or not."""
    jumps = frame % (HELD + RELEASED) < HELD
    wanted = BUTTONS["RIGHT"] | BUTTONS["B"] | (BUTTONS["A"] if jumps else 0)

    def missed(index: int) -> tuple[bool, int]:
        differing = masks[index] ^ wanted
        # The direction counts most.
        return bool(differing & BUTTONS["RIGHT"]), differing.bit_count()

    return min(range(len(masks)), key=missed)
