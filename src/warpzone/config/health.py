"""Monitoring: heartbeat, stalls, slow steps, hints and alerts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import Above, AtLeast, AtMost, Lasts, Refusal, Share


@dataclass(frozen=True)
class HealthConfig:
    """Monitoring: heartbeat, stalls, slow steps, hints and alerts."""

    monitor_interval: Annotated[float, AtLeast(0), Lasts("seconds")] = 10.0
    """Seconds between two samples of GPU, CPU and memory; 0 takes none."""
    gpu_window: Annotated[int, AtLeast(1)] = 100
    """Samples over which the mean and the peak of the GPU's use are taken."""
    heartbeat_interval: Annotated[float, AtLeast(0), Lasts("seconds")] = 30.0
    """Seconds between two lines of heartbeat.jsonl; 0 writes none."""
    stall_timeout: Annotated[float, AtLeast(0), Lasts("seconds")] = 300.0
    """Write the stacks of all threads after this many seconds without progress; 0 never does."""
    fail_on_stall: bool = False
    """End a run that made no progress for --stall-timeout seconds, with exit code 1."""
    step_timeout: Annotated[float, Above(0), Lasts("seconds")] = 15.0
    """A step of all lanes that takes longer than this many seconds is slow."""
    slow_step_trace_threshold: Annotated[int, AtLeast(0)] = 5
    """More slow steps than this within the window write the stacks of all threads; 0 never does."""
    slow_step_trace_window: Annotated[float, Above(0), Lasts("seconds")] = 120.0
    """Seconds in which slow steps are counted together."""
    hint_cooldown_updates: Annotated[int, AtLeast(0)] = 200
    """Updates before the same hint is given again; 0 gives no hints."""
    alert_cooldown: Annotated[float, AtLeast(0), Lasts("seconds")] = 600.0
    """Seconds before the same alert is raised again; 0 raises no alerts."""
    alert_skipped: Annotated[int, AtLeast(0)] = 1
    """Alert if so many optimiser steps of an update were not finite; 0 never."""
    alert_clear_drop: Annotated[float, Share()] = 0.3
    """Alert if the clear rate is this far below its best; 0 never."""
    alert_disk_gb: Annotated[float, AtLeast(0)] = 1.0
    """Alert if fewer GiB than this are left on the disk of the run; 0 never."""
    alert_gpu_idle: Annotated[float, AtLeast(0), AtMost(100)] = 10.0
    """Alert if the GPU is busy less than this percent of its window; 0 never."""


def refusals(config: HealthConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        config.fail_on_stall and config.stall_timeout == 0,
        "--fail-on-stall needs a --stall-timeout above 0",
    )
