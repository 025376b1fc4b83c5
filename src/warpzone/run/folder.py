"""The folder of a run: the only interface between training and everything that looks at it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from warpzone.config import ConfigError, TrainConfig, from_dict
from warpzone.model.agent import Agent
from warpzone.model.spec import ModelSpec
from warpzone.run.files import write_atomically, write_text

CONFIG = "config.json"
METRICS = "metrics.jsonl"
EPISODES = "episodes.jsonl"
WEIGHTS = "weights.safetensors"
BEST = "best.safetensors"


class RunFolder:
    """Creates a run's folder and writes its files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, config: TrainConfig) -> RunFolder:
        """A new folder. An existing run of that name is never written over."""
        name = config.run_name or time.strftime("%Y%m%d-%H%M%S")
        path = Path(config.runs_dir) / name
        if (path / CONFIG).exists():
            raise ConfigError(f"the run {path} exists already; choose another --run-name")
        path.mkdir(parents=True, exist_ok=True)
        write_text(path / CONFIG, config.to_json())
        return cls(path)

    def append(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Adds lines to a JSONL file, each written whole."""
        if rows:
            text = "".join(json.dumps(row) + "\n" for row in rows)
            with (self.path / name).open("a") as file:
                file.write(text)

    def save_weights(self, name: str, agent: Agent, meta: dict[str, Any]) -> Path:
        """The agent's weights as safetensors, with `meta` as text beside them inside the file."""
        path = self.path / name
        tensors: dict[str, Tensor] = {
            key: value.detach().cpu().contiguous() for key, value in agent.state_dict().items()
        }
        text = {"meta": json.dumps(meta)}
        write_atomically(path, lambda temporary: save_file(tensors, temporary, metadata=text))
        return path


def load_config(path: Path) -> TrainConfig:
    """The configuration a run was started with."""
    file = path / CONFIG
    if not file.is_file():
        raise ConfigError(f"{path} is not a run: it has no {CONFIG}")
    try:
        return from_dict(json.loads(file.read_text()))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error


def model_spec(config: TrainConfig, actions: int) -> ModelSpec:
    """The network that a configuration describes."""
    return ModelSpec(
        actions=actions,
        stack=config.frame_stack,
        height=config.size,
        width=config.size,
        encoder=config.encoder,
        blocks=config.impala_blocks,
        features=config.hidden_size,
        width_multiplier=config.encoder_width,
        previous_action=config.previous_action,
        memory=config.memory,
        memory_size=config.hidden_size,
        memory_layers=config.memory_layers,
        memory_heads=config.memory_heads,
        memory_length=config.memory_length,
        noisy=config.noisy,
    )


def load_agent(path: Path, name: str = "") -> tuple[Agent, TrainConfig]:
    """A trained agent: the best weights of a run if there are any, else the last."""
    from warpzone.env.actions import action_table

    config = load_config(path)
    file = path / (name or (BEST if (path / BEST).is_file() else WEIGHTS))
    if not file.is_file():
        raise ConfigError(f"{path} has no weights yet")
    agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
    agent.load_state_dict(load_file(file))
    return agent, config
