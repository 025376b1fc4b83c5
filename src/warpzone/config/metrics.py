"""Metrics: files and sinks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import AtLeast, Lasts


@dataclass(frozen=True)
class MetricsConfig:
    """Metrics: files and sinks."""

    enable_tensorboard: bool = False
    """Also write the metrics for TensorBoard, to tensorboard/ in the run's folder."""
    wandb_project: str = ""
    """Also send the metrics to this project of Weights & Biases (WANDB_MODE=offline keeps them)."""
    parquet_interval: Annotated[float, AtLeast(0), Lasts("seconds")] = 60.0
    """Seconds between two writes of the Parquet files in metrics/; 0 never writes them."""
    episode_window: Annotated[int, AtLeast(1)] = 500
    """Episodes over which returns, quantiles and clear rate are taken."""
    metrics_rotate_mb: Annotated[float, AtLeast(0)] = 64.0
    """Begin a new part of the JSONL files at this size, and compress the old one; 0 never."""
