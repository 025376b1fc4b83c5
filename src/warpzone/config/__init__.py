"""The configuration of a training run: one frozen, flat dataclass made of sections. The command
line is derived from it, presets are files with some of its fields, and nonsense is refused with the
reason."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.config import (
    adaptive,
    algorithm,
    backend,
    dashboard,
    health,
    network,
    optimisation,
    play,
    reward,
    starts,
)
from warpzone.config.adaptive import AdaptiveConfig
from warpzone.config.algorithm import AlgorithmConfig
from warpzone.config.backend import BackendConfig
from warpzone.config.bounds import Refusal, out_of_bounds
from warpzone.config.budget import BudgetConfig
from warpzone.config.checkpointing import CheckpointConfig
from warpzone.config.contradictions import contradictions
from warpzone.config.curriculum import CurriculumConfig
from warpzone.config.dashboard import DashboardConfig
from warpzone.config.health import HealthConfig
from warpzone.config.metrics import MetricsConfig
from warpzone.config.network import NetworkConfig
from warpzone.config.optimisation import OptimisationConfig
from warpzone.config.play import PlayConfig, folded
from warpzone.config.replay import ReplayConfig
from warpzone.config.reward import RewardConfig
from warpzone.config.run import RunConfig
from warpzone.config.starts import StartConfig
from warpzone.config.video import VideoConfig
from warpzone.env.actions import action_table
from warpzone.env.script import parse_start
from warpzone.env.stages import parse_stages
from warpzone.rom.paths import read_plain

#: Bytes of a preset, which has some hundred.
MOST_BYTES = 1 << 20
PRESETS = Path(__file__).parent.parent / "presets"


class ConfigError(ValueError):
    """A configuration that cannot work; one sentence that says why."""


def _refuse(refusals: Iterable[Refusal]) -> None:
    """Raises the first refusal that holds."""
    for refused, message in refusals:
        if refused:
            raise ConfigError(message)


@dataclass(frozen=True)
class TrainConfig(
    VideoConfig,
    BackendConfig,
    CurriculumConfig,
    StartConfig,
    HealthConfig,
    MetricsConfig,
    AdaptiveConfig,
    CheckpointConfig,
    DashboardConfig,
    RunConfig,
    BudgetConfig,
    OptimisationConfig,
    ReplayConfig,
    AlgorithmConfig,
    NetworkConfig,
    RewardConfig,
    PlayConfig,
):
    """What to train, on what, and how. Fields come in the order of the sections from the last to
    the first."""

    def __post_init__(self) -> None:
        _refuse(out_of_bounds(self))
        try:
            for name, value in folded(self).items():
                object.__setattr__(self, name, value)
            parse_stages(self.stages)
            action_table(self.actions)
            if self.scripted_sequence:
                parse_start(self.scripted_sequence)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        _refuse(_rules(self))

    @property
    def steps_per_update(self) -> int:
        """Steps in a rollout."""
        return self.num_envs * self.rollout_steps

    @property
    def updates(self) -> int:
        """Rollouts in the run."""
        return max(1, self.max_steps // self.steps_per_update)

    @property
    def whole_lanes(self) -> bool:
        """Whether minibatches are made of whole lanes instead of single steps."""
        return self.memory != "none" or self.needs.whole_lanes

    def to_json(self) -> str:
        """The whole configuration."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def replace(self, **changes: Any) -> TrainConfig:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def _rules(config: TrainConfig) -> Iterator[Refusal]:
    """The rules of each section, then those across sections."""
    yield from play.refusals(config)
    yield from reward.refusals(config)
    yield from network.refusals(config)
    yield from algorithm.refusals(config)
    yield from optimisation.refusals(config)
    yield from dashboard.refusals(config)
    yield from adaptive.refusals(config)
    yield from health.refusals(config)
    yield from starts.refusals(config)
    yield from backend.refusals(config)
    yield from contradictions(config)


def preset_names() -> list[str]:
    """Presets that ship with the package."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def load_preset(name: str) -> TrainConfig:
    """A preset by name, or a TOML file by its path."""
    path = Path(name) if name.endswith(".toml") else PRESETS / f"{name}.toml"
    if not path.is_file():
        raise ConfigError(f"there is no preset {name!r}; presets are {', '.join(preset_names())}")
    try:
        values = tomllib.loads(read_plain(path, MOST_BYTES).decode())
    except RecursionError as error:
        raise ConfigError(f"preset {name} cannot be read: it is nested too deeply") from error
    except ValueError as error:
        # TOML that is none, text that is none, or a number with thousands of digits.
        raise ConfigError(f"preset {name} cannot be read: {error}") from error
    try:
        return from_dict(values)
    except ConfigError as error:
        raise ConfigError(f"preset {name} cannot be used: {error}") from error


def from_dict(values: dict[str, Any]) -> TrainConfig:
    """A configuration from saved or preset fields; unknown ones are refused."""
    known = {field.name for field in dataclasses.fields(TrainConfig)}
    for name in values:
        if name not in known:
            raise ConfigError(f"unknown configuration field {name!r}")
    return TrainConfig(**values)
