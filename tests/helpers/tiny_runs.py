"""The smallest runs that still do everything: a few lanes, a narrow network, short rollouts."""

from pathlib import Path
from typing import Any

import torch

from warpzone import rom
from warpzone.collect.collector import Collector
from warpzone.collect.lanes import make_groups
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.env.actions import action_table
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec
from warpzone.rom import native
from warpzone.train.loop import Run

CPU = torch.device("cpu")


def tiny(**changes: Any) -> TrainConfig:
    """Stage 1-1 with lanes that end often: a step without new ground is soon one too many."""
    values: dict[str, Any] = {
        "num_envs": 4,
        "groups": 2,
        "num_threads": 1,
        "rollout_steps": 8,
        "minibatch": 16,
        "epochs": 1,
        "size": 36,
        "encoder_width": 0.125,
        "hidden_size": 16,
        "memory_length": 5,
        "memory_layers": 1,
        "memory_heads": 2,
        "stagnation_limit": 3,
        "max_steps": 96,
        "device": "cpu",
        "seed": 7,
    }
    return TrainConfig(**{**values, **changes})


def make_agent(config: TrainConfig, seed: int = 0) -> Agent:
    """An agent whose policy is not nearly uniform, as that of a new one is."""
    torch.manual_seed(seed)
    agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
    with torch.no_grad():
        agent.heads.policy.weight.mul_(50.0)
    return agent


def make_collector(config: TrainConfig, agent: Agent) -> Collector:
    """A collector on the CPU; close it."""
    image = rom.find(config.rom)
    groups = make_groups(config, image, native.load(image), CPU)
    return Collector(config, agent, groups, CPU)


def collect(collector: Collector, updates: int, first: int = 0) -> list[Rollout]:
    """Rollouts as a run makes them, copied."""
    rollouts = []
    for update in range(first, first + updates):
        collector.prepare(update * collector.config.steps_per_update)
        rollout = collector.collect()
        rollouts.append(Rollout(*(_copy(part) for part in rollout)))
        collector.episodes.take()
    return rollouts


def _copy(part: Any) -> Any:
    return part.clone() if isinstance(part, torch.Tensor) else tuple(p.clone() for p in part)


def same_rollout(first: Rollout, second: Rollout) -> bool:
    """Whether two rollouts are one, bit by bit."""
    pairs = zip(first, second, strict=True)
    return all(
        torch.equal(a, b)
        for a, b in pairs
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    )


class Recorder:
    """A progress display that keeps what it is shown."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.said: list[str] = []

    def update(self, row: dict[str, Any]) -> None:
        self.rows.append(row)

    def say(self, text: str) -> None:
        self.said.append(text)


def learn(folder: Path, **changes: Any) -> tuple[Run, Recorder]:
    """A whole run but for its evaluation."""
    run = Run(tiny(runs_dir=str(folder), **changes))
    shown = Recorder()
    try:
        run.learn(shown)  # type: ignore[arg-type]
    finally:
        run.collector.close()
    return run, shown


def same(first: Agent, second: Agent) -> bool:
    """Whether two agents have the same weights, bit for bit."""
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)
