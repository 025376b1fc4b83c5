"""Whether a run may resume from a checkpoint: which settings differ, and which of them matter."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from warpzone.config import ConfigError, TrainConfig
from warpzone.config.budget import BudgetConfig
from warpzone.config.checkpointing import CheckpointConfig
from warpzone.config.dashboard import DashboardConfig
from warpzone.config.health import HealthConfig
from warpzone.config.metrics import MetricsConfig
from warpzone.config.plugins import PluginConfig
from warpzone.config.scale import ScaleConfig
from warpzone.config.video import VideoConfig

#: Settings of the network: weights of other settings do not fit, or mean something else.
NETWORK = (
    *("encoder", "encoder_width", "encoder_channels", "impala_blocks", "hidden_size"),
    *("memory", "memory_length", "memory_layers", "memory_heads", "previous_action", "noisy"),
    "network",
    *("actions", "frame_stack", "size", "observation", "color"),
)
#: Settings of duration, paths and output. They may change at any time.
FREE_SECTIONS = (
    BudgetConfig,
    CheckpointConfig,
    DashboardConfig,
    VideoConfig,
    MetricsConfig,
    HealthConfig,
    PluginConfig,
    ScaleConfig,
)
FREE = {
    *("run_name", "runs_dir", "eval_interval", "log_interval", "device", "num_threads", "rom"),
    *("cuda_graphs", "compile"),
    *("force_sync", "env_start_method", "worker_start_delay", "env_reset_timeout"),
    *("env_step_timeout", "parent_prewarm", "parent_prewarm_all", "env_diag_dir"),
    *(field.name for section in FREE_SECTIONS for field in dataclasses.fields(section)),
}


@dataclass(frozen=True)
class Difference:
    """Settings in which two configurations differ, as flags."""

    network: tuple[str, ...]
    others: tuple[str, ...]

    def refusal(self, relaxed: bool) -> str | None:
        """Why resuming is refused; None if it is allowed."""
        if self.network:
            return f"network mismatch ({', '.join(self.network)})"
        if self.others and not relaxed:
            return f"settings mismatch ({', '.join(self.others)})"
        return None


def require_network(config: TrainConfig, agent: TrainConfig) -> None:
    """Refuses to begin with the weights of an agent: they mean nothing to a network that is made,
    fed or read otherwise."""
    if network := compare(config, agent).network:
        raise ConfigError(f"--init {config.init} is of another network ({', '.join(network)})")


def compare(config: TrainConfig, saved: TrainConfig) -> Difference:
    """The differences, without the free settings."""
    names = [
        field.name
        for field in dataclasses.fields(TrainConfig)
        if field.name not in FREE and getattr(config, field.name) != getattr(saved, field.name)
    ]
    return Difference(
        tuple(_describe(name, config, saved) for name in names if name in NETWORK),
        tuple(_describe(name, config, saved) for name in names if name not in NETWORK),
    )


def _describe(name: str, config: TrainConfig, saved: TrainConfig) -> str:
    flag = "--" + name.replace("_", "-")
    return f"{flag} {getattr(saved, name)} there, {getattr(config, name)} here"
