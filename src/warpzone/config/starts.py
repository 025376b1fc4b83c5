"""Scripted and forced starts of episodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import AtLeast, Refusal, Share


@dataclass(frozen=True)
class StartConfig:
    """Scripted and forced starts of episodes."""

    scripted_sequence: str = ""
    """Buttons that every episode starts with, e.g. RIGHT+B:180,RIGHT+A+B:20 (frames)."""
    scripted_forward_frames: Annotated[int, AtLeast(0)] = 0
    """Frames of the forward action that follow; 0 is none."""
    scripted_share: Annotated[float, Share()] = 0.1
    """Share of --max-steps after which episodes start without a script; 1 is never."""
    scripted_steps: Annotated[int, AtLeast(0)] = 0
    """The same as a number of steps; 0 goes by --scripted-share."""
    forward_action_id: int | None = None
    """The action that goes forward; found by probing or by its buttons if not given."""
    probe_forward_actions: Annotated[int, AtLeast(0)] = 0
    """Try every action for this many steps and take the one that goes furthest right; 0 is off."""
    auto_bootstrap_threshold: Annotated[int, AtLeast(0)] = 0
    """From this update on, force the forward action once if no lane gains new ground; 0 is off."""
    auto_bootstrap_frames: Annotated[int, AtLeast(0)] = 0
    """Frames for which it is forced then."""


def refusals(config: StartConfig) -> Iterator[Refusal]:
    """Fields of this section that do not go together."""
    yield (
        config.forward_action_id is not None and config.probe_forward_actions > 0,
        "--probe-forward-actions finds what --forward-action-id says; give one of them",
    )
    yield (
        (config.auto_bootstrap_threshold > 0) != (config.auto_bootstrap_frames > 0),
        "--auto-bootstrap-threshold and --auto-bootstrap-frames need each other",
    )
