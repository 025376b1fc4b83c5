"""Measures this machine briefly with a configuration: engine, inference and learning."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from warpzone import rom
from warpzone.collect.actor import Actor, autocast
from warpzone.collect.lanes import make_groups
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table
from warpzone.env.backends.interface import BackendError
from warpzone.model.agent import Agent
from warpzone.model.cpu import acting_threads, computing_with
from warpzone.model.own import make_agent
from warpzone.rom import native

MOMENT = 0.25
#: Enough to keep every core busy, few enough to be made at once.
MOST_LANES = 256
#: On a CPU a small batch is as fast for each sample as a large one.
CPU_BATCH = 256


@dataclass(frozen=True)
class Speeds:
    """Steps/s of each part alone."""

    engine: float
    inference: float
    learning: float

    def together(self, config: TrainConfig, device: torch.device) -> float:
        """Steps/s of a run. The parts share the cores of a CPU, so their times add up; beside a
        GPU the engine plays while the network decides, and collects while it learns if asked."""
        engine, inference, learning = 1 / self.engine, 1 / self.inference, 1 / self.learning
        if device.type != "cuda":
            return 1 / (engine + inference + learning)
        collect = max(engine, inference) if config.groups > 1 else engine + inference
        return 1 / (max(collect, learning) if config.overlap_collect else collect + learning)


def forecast(config: TrainConfig, device: torch.device) -> str:
    """One sentence about the time, measured now."""
    try:
        speeds = measure(config, device)
    except rom.RomError as error:
        return f"unknown, because lanes need a ROM: {error}"
    except BackendError as error:
        return f"unknown, because {error}"
    rate = speeds.together(config, device)
    text = (
        f"{_duration(config.max_steps / rate)} for {config.max_steps:,} steps at about "
        f"{rate:,.0f} steps/s (measured for a moment {_load()}: engine {speeds.engine:,.0f}, "
        f"inference {speeds.inference:,.0f}, learning {speeds.learning:,.0f} steps/s)"
    )
    if config.max_time:
        text += f"; stops after {config.max_time:g} min"
    if config.stop_at:
        text += f"; stops once {config.clears_to_stop} of {config.most_clears} start delays are "
        text += "cleared"
    return text


def _load() -> str:
    """How busy the machine was: a prediction is of a machine that stays so."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = os.getloadavg()[0]
    return f"beside a load of {load:.1f} on {cores or 1} cores"


def measure(config: TrainConfig, device: torch.device) -> Speeds:
    """About a second of work on few lanes; never waits for a compiler."""
    image = rom.find(config.rom)
    program = native.ready(image)
    lanes = min(config.num_envs // config.groups, MOST_LANES)
    batch = lanes * config.rollout_steps
    small = config.replace(
        num_envs=lanes,
        groups=1,
        minibatch=batch,
        grad_accum=1,
        max_steps=max(batch, config.max_steps),
    )
    actions = len(action_table(config.actions).masks)
    agent = make_agent(config, actions).to(device)
    actor = Actor(small, agent, lanes, device)
    groups = make_groups(small, image, program, device)
    group = groups[0]
    plan = np.random.default_rng(0).integers(0, actions, (64, lanes))
    turn = 0
    threads = acting_threads(agent, lanes) if device.type == "cpu" else 0

    def play() -> int:
        nonlocal turn
        group.start(plan[turn % len(plan)])
        group.finish()
        turn += 1
        return lanes

    def decide() -> int:
        with computing_with(threads):
            actor.decide()
        actor.action.cpu()
        return lanes

    try:
        return Speeds(_rate(play), _rate(decide), _rate(_learning(config, agent, device)))
    finally:
        groups.close()


def _learning(config: TrainConfig, agent: Agent, device: torch.device) -> Callable[[], int]:
    """Forward and backward passes; a step counts when all passes over it are done."""
    wanted = config.minibatch if device.type == "cuda" else min(config.minibatch, CPU_BATCH)
    length = min(config.rollout_steps, wanted) if config.memory != "none" else 1
    steps = (length, max(1, wanted // length))
    picture = (config.frame_stack, *config.picture)
    obs = torch.zeros((*steps, *picture), dtype=torch.uint8, device=device)
    before = torch.zeros(steps, dtype=torch.int64, device=device)
    starts = torch.zeros(steps, dtype=torch.bool, device=device)
    state = agent.initial_state(steps[1], device=device)
    passes = float(config.epochs)
    if config.per:
        passes += config.per_segments / config.num_envs / config.per_sample_interval
    done = 0.0

    def learn() -> int:
        nonlocal done
        with autocast(config, device):
            output = agent(obs, before, state, starts)
        (output.logits.float().square().mean() + output.value.float().square().mean()).backward()
        agent.zero_grad(set_to_none=True)
        if device.type == "cuda":
            torch.cuda.synchronize()
        before_this, done = done // passes, done + steps[0] * steps[1]
        return int(done // passes - before_this)

    return learn


def _rate(once: Callable[[], int]) -> float:
    once()
    began = time.perf_counter()
    done = 0
    while (passed := time.perf_counter() - began) < MOMENT or done == 0:
        done += once()
    return done / max(passed, 1e-9)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"about {minutes:.0f} min" if minutes < 90 else f"about {minutes / 60:.1f} hours"
