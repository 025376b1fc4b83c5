"""The evaluation protocol: argmax and sampled policy, every start delay, one life, no help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from warpzone import _engine
from warpzone.config import TrainConfig
from warpzone.env.stages import parse_stages, stage_name
from warpzone.model.agent import Agent
from warpzone.train.lanes import COLUMN, lane_options

DELAYS = tuple(range(31))
POLICIES = ("argmax", "sampled")
#: More than the game's own clock allows, so that only the game ends an episode.
STEP_LIMIT = 3000
#: A policy that has not moved on for this long will not: it is stuck, and counts as failed.
STUCK_AFTER = 400


@dataclass(frozen=True)
class Outcome:
    """One evaluated episode."""

    stage: str
    policy: str
    start_delay: int
    cleared: bool
    furthest_x: int
    steps: int
    time_left: int
    episode_return: float
    reason: str


class _Lanes:
    """Every (stage, policy) pair for every start delay, one vector of lanes for each delay."""

    def __init__(
        self,
        config: TrainConfig,
        rom: bytes,
        native: _engine.NativeProgram | None,
        stages: Sequence[int],
        delays: Sequence[int],
        seed: int,
    ) -> None:
        self.cases = [(stage, policy) for stage in stages for policy in POLICIES]
        self.delays = delays
        share = len(self.cases)
        total = share * len(delays)
        size = config.size
        self.frames = np.zeros((total, 1, size, size), np.uint8)
        self.rewards = np.zeros(total, np.float32)
        self.terminated = np.zeros(total, np.bool_)
        self.truncated = np.zeros(total, np.bool_)
        self.info = np.zeros((total, len(_engine.INFO_FIELDS)), np.int32)
        self.final_frames = np.zeros_like(self.frames)
        self.final_info = np.zeros_like(self.info)
        self.parts: list[tuple[_engine.Vector, slice]] = []
        names = [[stage_name(stage)] for stage, _ in self.cases]
        for index, delay in enumerate(delays):
            options = lane_options(
                config,
                stages=names,
                start_delay=(delay, delay),
                sticky=0.0,
                time_limit=STEP_LIMIT,
                stagnation_limit=STUCK_AFTER,
            )
            vector = _engine.Vector(
                rom,
                native=native,
                num_threads=1,
                autoreset="same_step",
                **options.engine_arguments(share),
            )
            rows = slice(index * share, (index + 1) * share)
            vector.seed([seed + rows.start + lane for lane in range(share)])
            vector.reset(None, self.frames[rows], self.info[rows])
            self.parts.append((vector, rows))

    def step(self, actions: NDArray[np.int64], running: NDArray[np.bool_]) -> None:
        for vector, rows in self.parts:
            if running[rows].any():
                vector.step(
                    actions[rows],
                    self.frames[rows],
                    self.rewards[rows],
                    self.terminated[rows],
                    self.truncated[rows],
                    self.info[rows],
                    self.final_frames[rows],
                    self.final_info[rows],
                )

    def close(self) -> None:
        for vector, _ in self.parts:
            vector.close()


@torch.no_grad()
def evaluate(
    agent: Agent,
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    *,
    stages: str | None = None,
    delays: Sequence[int] = DELAYS,
    seed: int = 0,
) -> list[Outcome]:
    """Plays every stage from every start delay with both policies. The same agent gives the same
    outcomes every time."""
    device = next(agent.parameters()).device
    # The whole game is judged by its first stage, which every game starts with.
    played = parse_stages(stages or config.stages) or (0,)
    lanes = _Lanes(config, rom, native, played, delays, seed)
    total = len(lanes.rewards)
    argmax = np.array([policy == "argmax" for _, policy in lanes.cases] * len(delays))
    sampling = torch.Generator(device="cpu").manual_seed(seed)
    stack = _as_tensor(lanes.frames, device).repeat(1, config.frame_stack, 1, 1)
    state = agent.initial_state(total, device=device)
    previous = torch.zeros(total, dtype=torch.int64, device=device)
    starts = torch.ones(total, dtype=torch.bool, device=device)
    returns = np.zeros(total)
    outcomes: list[Outcome | None] = [None] * total
    running = np.ones(total, np.bool_)
    was_training = agent.training
    agent.eval()
    for step in range(1, STEP_LIMIT + 1):
        output = agent.act(stack, previous, state, starts)
        state = output.state
        logits = output.logits.float().cpu()
        noise = torch.rand(logits.shape, generator=sampling).clamp_(1e-10, 1 - 1e-7)
        sampled = (logits - torch.log(-torch.log(noise))).argmax(-1).numpy()
        actions = np.where(argmax, logits.argmax(-1).numpy(), sampled).astype(np.int64)
        lanes.step(actions, running)
        returns += np.where(running, lanes.rewards, 0.0)
        ended = (lanes.terminated | lanes.truncated) & running
        for index in np.flatnonzero(ended):
            outcomes[index] = _outcome(lanes, int(index), step, float(returns[index]))
        running &= ~ended
        if not running.any():
            break
        previous = torch.from_numpy(actions).to(device)
        starts = torch.zeros_like(starts)
        stack = torch.cat((stack[:, 1:], _as_tensor(lanes.frames, device)), 1)
    agent.train(was_training)
    lanes.close()
    return [outcome for outcome in outcomes if outcome is not None]


def _as_tensor(frames: NDArray[np.uint8], device: torch.device) -> Tensor:
    return torch.from_numpy(frames).to(device)


def _outcome(lanes: _Lanes, index: int, steps: int, episode_return: float) -> Outcome:
    stage, policy = lanes.cases[index % len(lanes.cases)]
    info = lanes.final_info[index]
    cleared = bool(lanes.terminated[index] and info[COLUMN["flag_get"]])
    reason = "flag" if cleared else "death" if lanes.terminated[index] else "stuck"
    return Outcome(
        stage=stage_name(stage),
        policy=policy,
        start_delay=lanes.delays[index // len(lanes.cases)],
        cleared=cleared,
        furthest_x=int(info[COLUMN["furthest_x"]]),
        steps=steps,
        time_left=int(info[COLUMN["time"]]),
        episode_return=episode_return,
        reason=reason,
    )


def clears(outcomes: Sequence[Outcome], policy: str = "argmax") -> int:
    """Episodes of one policy that reached the flag."""
    return sum(outcome.cleared for outcome in outcomes if outcome.policy == policy)
