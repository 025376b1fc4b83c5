"""The evaluation protocol: argmax and sampled policy, every start delay, one life, no scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.config import TrainConfig
from warpzone.env.infos import COLUMN
from warpzone.env.stages import parse_stages, stage_name
from warpzone.eval.cases import DELAYS, POLICIES, Case, Outcome, clears, make_cases
from warpzone.eval.chance import uniform
from warpzone.eval.eval_lanes import EvalLanes, Landing
from warpzone.eval.policy import Policy
from warpzone.model.agent import Agent

__all__ = [
    "DELAYS",
    "POLICIES",
    "STEP_LIMIT",
    "STUCK_AFTER",
    "Outcome",
    "clears",
    "evaluate",
    "evaluate_cases",
    "training_cases",
]

#: More than the game's own clock allows, so that only the game ends an episode.
STEP_LIMIT = 3000
#: An episode without new ground for this many steps is stuck and counts as failed.
STUCK_AFTER = 400
#: `player_state` after a hit or the end of the time; other deaths are falls.
HIT = (6, 11)
#: Lanes played together at most; more would only fill the memory.
TOGETHER = 2048


def evaluate(
    agent: Agent,
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    *,
    stages: str | None = None,
    delays: Sequence[int] = DELAYS,
    policies: Sequence[str] = POLICIES,
    seed: int = 0,
    stuck_after: int | None = None,
    start_power: str = "small",
    start_halfway: float = 0.0,
    together: int = TOGETHER,
    each_step: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Plays every stage from every start delay with the policies. The same agent gives the same
    outcomes every time, however many lanes are played together. `each_step` is called often; an
    exception ends the evaluation."""
    cases = make_cases(_stages(stages or config.stages), policies, delays)
    return evaluate_cases(
        agent,
        config,
        rom,
        native,
        cases,
        seed=seed,
        stuck_after=stuck_after,
        start_power=start_power,
        start_halfway=start_halfway,
        together=together,
        each_step=each_step,
    )


def training_cases(config: TrainConfig) -> list[Case]:
    """The episodes of an evaluation in training."""
    return make_cases(_stages(config.stages), POLICIES, DELAYS)


def _stages(stages: str) -> tuple[int, ...]:
    # The whole game is judged by its first stage, which every game starts with.
    return parse_stages(stages) or (0,)


def evaluate_cases(
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
    together: int = TOGETHER,
    each_step: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Plays these cases; the outcomes come in their order."""
    lanes = {
        "stagnation_limit": STUCK_AFTER if stuck_after is None else stuck_after,
        "start_power": start_power,
        "start_halfway": start_halfway,
    }
    outcomes: list[Outcome] = []
    with evaluating(agent):
        for first in range(0, len(cases), together):
            part = cases[first : first + together]
            outcomes += _play(agent, config, rom, native, part, lanes, seed, each_step)
    return outcomes


@contextmanager
def evaluating(agent: Agent) -> Iterator[None]:
    """Switches the agent to evaluation mode, and restores its mode afterwards."""
    was_training = agent.training
    agent.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        agent.train(was_training)


def _play(
    agent: Agent,
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    cases: Sequence[Case],
    options: Mapping[str, Any],
    seed: int,
    each_step: Callable[[], None],
) -> list[Outcome]:
    lanes = EvalLanes(config, rom, native, cases, time_limit=STEP_LIMIT, **options)
    chooser = Chooser(cases, seed)
    returns = np.zeros(len(cases))
    outcomes: list[Outcome | None] = [None] * len(cases)
    running = np.arange(len(cases))
    with closing(lanes), Policy(agent, lanes.first_frames) as policy:
        for step in range(STEP_LIMIT):
            each_step()
            actions = chooser.choose(policy.decide(running).logits, running, step)
            landing = lanes.step(actions, running)
            returns[running] += landing.rewards
            ended = landing.terminated | landing.truncated
            for row in np.flatnonzero(ended):
                lane = int(running[row])
                outcomes[lane] = outcome_of(cases[lane], landing, int(row), step + 1, returns[lane])
            # Ended lanes leave the batch: the network computes the others only.
            running, on = running[~ended], ~ended
            if not len(running):
                break
            policy.observe(running, landing.frames[on], actions[on])
    return [outcome for outcome in outcomes if outcome is not None]


class Chooser:
    """Turns logits into actions, for each lane by its own policy and its own chance."""

    def __init__(self, cases: Sequence[Case], seed: int) -> None:
        keys = np.array([case.key for case in cases], np.uint64)
        self._keys = keys ^ np.uint64(seed % 2**32 << 32)
        self._sampled = np.array([case.policy == "sampled" for case in cases])

    def choose(
        self, logits: NDArray[np.float32], lanes: NDArray[np.int64], step: int
    ) -> NDArray[np.int64]:
        """The likeliest action, or one drawn (the largest of logits with Gumbel noise)."""
        scores = logits.astype(np.float64)
        drawn = self._sampled[lanes]
        if drawn.any():
            chance = uniform(self._keys[lanes[drawn]], step, logits.shape[1])
            scores[drawn] -= np.log(-np.log(chance))
        chosen: NDArray[np.int64] = scores.argmax(-1)
        return chosen


def outcome_of(case: Case, landing: Landing, row: int, steps: int, total: float) -> Outcome:
    """The outcome of an episode that has ended."""
    info = dict(zip(COLUMN, landing.info[row].tolist(), strict=True))
    terminated = bool(landing.terminated[row])
    cleared = terminated and bool(info["flag_get"])
    if cleared:
        reason = "flag"
    elif terminated:
        reason = "death"
    else:
        reason = "limit" if steps >= STEP_LIMIT else "stuck"
    return Outcome(
        stage=stage_name(case.stage),
        policy=case.policy,
        start_delay=case.start_delay,
        cleared=cleared,
        furthest_x=info["furthest_x"],
        steps=steps,
        time_left=info["time"],
        episode_return=float(total),
        reason=reason,
        x=info["x_pos"],
        # After a fall, y wraps around from the bottom to the top.
        y=0 if reason == "death" and info["player_state"] not in HIT else info["y_pos"],
        area_type=info["area_type"],
        area_index=info["area_index"],
    )
