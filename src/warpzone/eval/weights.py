"""Finding an agent: a run's folder, a file of weights, a checkpoint's name, or `latest`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from warpzone.config import ConfigError, TrainConfig
from warpzone.env.actions import action_table
from warpzone.eval.guess import guess_config
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec
from warpzone.run.folder import CONFIG
from warpzone.run.loading import find_weights
from warpzone.run.safe import plain_name

SUFFIX = ".safetensors"
LATEST = "latest"
RUNS = Path("runs")


@dataclass(frozen=True)
class Found:
    """An agent and where it comes from."""

    agent: Agent
    config: TrainConfig
    #: The weights.
    path: Path
    #: Steps it was trained for, if the weights say so.
    global_step: int | None
    #: Whether the configuration was worked out from the shapes of the weights alone.
    guessed: bool = False


def find_agent(word: str | Path, runs: Path = RUNS) -> Found:
    """The agent that `word` names; of a run its best weights if there are any, else the newest."""
    path = latest_run(runs) if str(word) == LATEST else Path(word)
    guessed = False
    try:
        file, config = find_weights(path)
        tensors, notes = _read(file)
    except ConfigError:
        # Weights that come alone still have their shapes.
        if not path.is_file() or path.suffix != SUFFIX:
            raise
        file, guessed = path, True
        tensors, notes = _read(file)
        config = guess_config(tensors)
    agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
    try:
        agent.load_state_dict(tensors)
    except RuntimeError as error:
        raise ConfigError(
            f"{file} holds the weights of another network than its configuration describes"
        ) from error
    agent.eval()
    agent.zero_noise()
    return Found(agent, config, file, _step(notes), guessed)


def latest_run(runs: Path = RUNS) -> Path:
    """The run below `runs` that wrote weights last."""
    found = [path.parent for path in runs.glob(f"*/{CONFIG}")] if runs.is_dir() else []
    dated = []
    for run in found:
        files = [*run.glob(f"*{SUFFIX}"), *run.glob(f"checkpoints/*{SUFFIX}")]
        dated += [(path.stat().st_mtime, run) for path in files]
    if not dated:
        raise ConfigError(f"there is no run with weights in {runs}")
    return max(dated)[1]


def _read(path: Path) -> tuple[dict[str, Tensor], Mapping[str, str]]:
    try:
        with safe_open(path, "pt") as opened:
            notes = opened.metadata() or {}
        return {plain_name(name): value for name, value in load_file(path).items()}, notes
    except SafetensorError as error:
        raise OSError(f"{path} cannot be read: {error}") from error


def _step(notes: Mapping[str, str]) -> int | None:
    try:
        step = json.loads(notes.get("meta", "{}")).get("global_step")
    except (json.JSONDecodeError, AttributeError):
        return None
    return step if isinstance(step, int) else None
