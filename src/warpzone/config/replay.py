"""Prioritised replay of older rollouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import Above, AtLeast, Refusal, Share


@dataclass(frozen=True)
class ReplayConfig:
    """Prioritised replay of older rollouts."""

    per: bool = False
    """Prioritised replay of rollout segments (vtrace, appo)."""
    per_alpha: Annotated[float, Share()] = 0.6
    """Exponent of the priorities."""
    per_beta: Annotated[float, Share()] = 0.4
    """Exponent of the importance weights at the start."""
    per_beta_final: Annotated[float, Share()] = 1.0
    """Exponent of the importance weights at the end."""
    per_sample_interval: Annotated[int, AtLeast(1)] = 1
    """Every rollout is stored; every N-th update also learns from the replay."""
    per_interval_max: Annotated[int, AtLeast(0)] = 0
    """Let the interval follow the variance of TD errors, from --per-sample-interval up to this."""
    per_memory_gb: Annotated[float, Above(0)] = 1.0
    """GiB of memory for the replay, where the network runs; its capacity follows from it."""
    per_segments: Annotated[int, AtLeast(1)] = 64
    """Segments in a replayed batch."""
    per_burn_in: Annotated[int, AtLeast(0)] = 0
    """Steps at the start of a replayed segment that only warm up the memory."""
    per_gpu_sample: bool = False
    """Draw samples on the device."""
    per_gpu_sample_fallback_ms: Annotated[float, AtLeast(0)] = 0.0
    """Draw on the CPU after three draws in a row that were slower than this; 0 never does."""


def refusals(config: ReplayConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        0 < config.per_interval_max < config.per_sample_interval,
        f"--per-interval-max {config.per_interval_max} is below --per-sample-interval "
        f"{config.per_sample_interval}; 0 keeps the interval",
    )
