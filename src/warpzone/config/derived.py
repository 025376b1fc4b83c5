"""All fields, and what follows from them. A value that depends on another choice is worked out here
and nowhere else, so that one place answers what a run really does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from warpzone.config.adaptive import AdaptiveConfig
from warpzone.config.algorithm import AlgorithmConfig
from warpzone.config.backend import BackendConfig
from warpzone.config.budget import BudgetConfig
from warpzone.config.checkpointing import CheckpointConfig
from warpzone.config.curriculum import CurriculumConfig
from warpzone.config.dashboard import DashboardConfig
from warpzone.config.health import HealthConfig
from warpzone.config.metrics import MetricsConfig
from warpzone.config.network import NetworkConfig
from warpzone.config.optimisation import OptimisationConfig
from warpzone.config.play import PlayConfig, folded_stages
from warpzone.config.plugins import PluginConfig
from warpzone.config.replay import ReplayConfig
from warpzone.config.reward import RewardConfig
from warpzone.config.run import RunConfig
from warpzone.config.scale import ScaleConfig
from warpzone.config.starts import StartConfig
from warpzone.config.video import VideoConfig

#: A share of clears is a fraction of whole numbers: 24 / 31 x 31 must not become 25.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Derived(
    PluginConfig,
    VideoConfig,
    BackendConfig,
    CurriculumConfig,
    StartConfig,
    HealthConfig,
    MetricsConfig,
    AdaptiveConfig,
    CheckpointConfig,
    DashboardConfig,
    ScaleConfig,
    RunConfig,
    BudgetConfig,
    OptimisationConfig,
    ReplayConfig,
    AlgorithmConfig,
    NetworkConfig,
    RewardConfig,
    PlayConfig,
):
    """All fields, in the order of the sections from the last to the first."""

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

    @property
    def optimiser_steps(self) -> int:
        """Optimiser steps of an update."""
        return self.epochs * (self.steps_per_update // self.minibatch // self.grad_accum)

    @property
    def collects_beside(self) -> bool:
        """Whether rollouts are collected while others are learned from."""
        return self.overlap_collect or self.actors > 0

    @property
    def graphs(self) -> bool:
        """Whether decisions and learning are recorded as CUDA graphs, where there is CUDA. What
        `--compile` makes is not recorded."""
        return self.cuda_graphs and not self.compile

    @property
    def clears_to_stop(self) -> int:
        """Start delays that an evaluation must clear for the run to end; 0 never ends it so."""
        return math.ceil(self.stop_at * self.most_clears - ROUNDING) if self.stop_at else 0

    @property
    def practises_ways(self) -> bool:
        """Whether episodes may begin along ways through a stage."""
        return self.search_steps > 0 or bool(self.ways)

    @property
    def script_ends(self) -> float:
        """Steps of the run after which episodes start without a script; infinite if never."""
        if self.scripted_steps:
            return self.scripted_steps
        return self.scripted_share * self.max_steps if self.scripted_share < 1 else math.inf


def folded(config: Derived) -> dict[str, Any]:
    """Older and shorter spellings as what they mean: `world`, `stage` and the like as `stages`,
    `stop_at_clears` as `stop_at`. Doing it again changes nothing. ValueError if it makes no
    sense."""
    found: dict[str, Any] = folded_stages(config)
    if config.stop_at_clears:
        most = PlayConfig(stages=found["stages"]).most_clears
        if config.stop_at_clears > most:
            raise ValueError(
                f"--stop-at-clears {config.stop_at_clears} is never reached: an evaluation has "
                f"{most} start delays"
            )
        found |= {"stop_at": config.stop_at_clears / most, "stop_at_clears": 0}
    return found
