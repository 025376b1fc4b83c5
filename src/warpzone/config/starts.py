"""How episodes start, and who helps them to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StartConfig:
    """How episodes start, and who helps them to."""

    scripted_sequence: str = ""
    """Buttons that every episode starts with, e.g. RIGHT+B:180,RIGHT+A+B:20 (frames)."""
    scripted_forward_frames: int = 0
    """Frames of the forward action that follow; 0 is none."""
    scripted_steps: int = 0
    """Steps of the run after which episodes start without a script; 0 is never."""
    forward_action_id: int | None = None
    """The action that goes forward; found by probing or by its buttons if not given."""
    probe_forward_actions: int = 0
    """Try every action for this many steps and take the one that goes furthest right; 0 is off."""
    auto_bootstrap_threshold: int = 0
    """From this update on, force the forward action once if nobody gains new ground; 0 is off."""
    auto_bootstrap_frames: int = 0
    """Frames for which it is forced then."""
