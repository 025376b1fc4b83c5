"""Checkpoints, and how a run is resumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import AtLeast, Lasts


@dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints, and how a run is resumed."""

    checkpoint_minutes: Annotated[float, AtLeast(0), Lasts("minutes")] = 5.0
    """Minutes between two checkpoints; 0 goes by --checkpoint-interval alone."""
    checkpoint_interval: Annotated[int, AtLeast(0)] = 0
    """Updates between two checkpoints; 0 goes by --checkpoint-minutes alone."""
    keep_last: Annotated[int, AtLeast(1)] = 3
    """Checkpoints to keep, newest first; the one of the best evaluation stays as well."""
    keep_every: Annotated[int, AtLeast(0)] = 0
    """Also keep the checkpoints of every this many updates; 0 keeps none of them."""
    checkpoint_replay_gb: Annotated[float, AtLeast(0)] = 0.5
    """A replay of at most this many GiB goes into checkpoints; a larger one starts empty again."""
    resume: str = "never"
    """never, auto, latest, or a run's folder or checkpoint: what to resume."""
    resume_relax_match: bool = False
    """Resume despite other settings, as long as the network is the same."""
    checkpoint_root: str = ""
    """Folder below which --resume auto looks for runs; runs_dir if not given."""
    init: str = ""
    """Start with the weights of this agent: one that is shipped, a run, or a file of weights."""
    auto_mem: bool = False
    """When memory runs out, resume from the checkpoint with reduced sizes (also AUTO_MEM=1)."""
