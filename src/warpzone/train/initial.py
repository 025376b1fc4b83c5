"""Weights that a run begins with: `--init`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warpzone.config import TrainConfig
from warpzone.eval.weights import Found, find_agent
from warpzone.model.agent import Agent
from warpzone.run.files import sha256
from warpzone.run.matching import require_network


def load_initial(agent: Agent, config: TrainConfig) -> dict[str, Any]:
    """Gives a new network the weights of `config.init`; says which they are. ConfigError if they
    are of another network, OSError if they are damaged."""
    if not config.init:
        return {}
    found = find_agent(config.init, Path(config.runs_dir))
    require_network(config, found.config)
    agent.load_state_dict(found.agent.state_dict())
    return initial(found, config.init)


def initial(found: Found, name: str) -> dict[str, Any]:
    """Which weights a run begins with, for its record."""
    return {
        "agent": name,
        "path": str(found.path),
        "sha256": sha256(found.path),
        "global_step": found.global_step,
    }
