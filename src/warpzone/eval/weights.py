"""Finding an agent: a run, a file of weights, a checkpoint, `latest`, or one with a name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.outside import agree
from warpzone.env.actions import action_table
from warpzone.model.spec import model_spec
from warpzone.rom.waiting import load_torch
from warpzone.run.loading import find_weights
from warpzone.run.names import WEIGHTS_SUFFIX
from warpzone.run.opening import read_file
from warpzone.run.packing import read_packed
from warpzone.run.safe import read_header
from warpzone.run.shipped import description_beside, has_name, named_agent
from warpzone.run.sidecar import CheckpointError

if TYPE_CHECKING:
    from torch import Tensor

    from warpzone.model.agent import Agent

RUNS = Path("runs")
#: Bytes of a file of weights; the largest network here has some hundred MB.
MOST_WEIGHTS = 4 << 30


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

    @property
    def title(self) -> str:
        """Its name for display: a shipped or pulled agent has a name, others their path."""
        return self.path.stem if has_name(self.path) else str(self.path)


def find_agent(word: str | Path, runs: Path = RUNS, network: str = "") -> Found:
    """The agent that `word` names; of a run its best weights if there are any, else the newest.
    network: `module:Class`, named by the user, instead of the one that the run recorded."""
    path = named_agent(word, runs)
    # A link given by the user is followed; links inside a run are not.
    path = path.resolve() if path.is_symlink() and path.is_file() else path
    config: TrainConfig | None = None
    try:
        file, config = find_weights(path)
    except ConfigError:
        # Weights without a configuration are identified by their shapes.
        if not path.is_file() or path.suffix != WEIGHTS_SUFFIX or description_beside(path):
            raise
        file = path
    guessed = config is None
    if network and config is not None:
        config = agree(config.replace(network=network), ("network",))
    # Whatever is wrong with the words has been noticed by now: PyTorch takes seconds to load.
    tensors, notes = _read(file)
    if config is None:
        config = _guess(tensors, network)
    agent = _agent(file, config, tensors)
    agent.eval()
    agent.zero_noise()
    return Found(agent, config, file, _step(notes), guessed)


def _guess(tensors: Mapping[str, Tensor], network: str) -> TrainConfig:
    from warpzone.eval.guess import guess_config

    config = guess_config(tensors)
    return agree(config.replace(network=network), ("network",)) if network else config


def _agent(file: Path, config: TrainConfig, tensors: Mapping[str, Tensor]) -> Agent:
    """A network with these weights, made only if they are its own."""
    from warpzone.model.own import make_agent
    from warpzone.model.shapes import fits

    actions = len(action_table(config.actions).masks)
    other = ConfigError(
        f"{file} holds the weights of another network than its configuration describes"
    )
    try:
        spec = model_spec(config, actions)
    except ValueError as error:
        raise ConfigError(f"{file} cannot be used: {error}") from error
    shapes = {name: tuple(value.shape) for name, value in tensors.items()}
    if not (config.network or fits(spec, shapes)):
        raise other
    agent = make_agent(config, actions)
    try:
        agent.load_state_dict(tensors)
    except RuntimeError as error:
        raise other from error
    return agent


def _read(path: Path) -> tuple[dict[str, Tensor], Mapping[str, str]]:
    try:
        _, notes = read_header(path)
        content = read_file(path.parent, path.name, MOST_WEIGHTS)
        expected = description_beside(path).get("sha256")
        if expected is not None and hashlib.sha256(content).hexdigest() != expected:
            raise CheckpointError("it is not the file that its description was made for")
        load_torch()
        tensors = read_packed(content)
    except CheckpointError as error:
        raise OSError(f"{path} cannot be read: {error}") from error
    return tensors, notes


def _step(notes: Mapping[str, str]) -> int | None:
    try:
        step = json.loads(notes.get("meta", "{}")).get("global_step")
    except (json.JSONDecodeError, AttributeError):
        return None
    return step if isinstance(step, int) else None
