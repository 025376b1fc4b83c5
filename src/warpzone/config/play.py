"""What the lanes play and what the network sees of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlayConfig:
    """What the lanes play and what the network sees of it."""

    stages: str = "1-1"
    """Stages, e.g. 1-1, "1-1,1-2", "1-1..2-4", all, or game (the whole game)."""
    actions: str = "simple"
    """Action set: right, simple, complex or extended."""
    rom: str | None = None
    """ROM: eu, world or a file; the installed one if not given."""
    num_envs: int = 512
    """Lanes played at the same time."""
    num_threads: int = 0
    """Engine threads; 0 uses every core."""
    frame_skip: int = 4
    """Frames for each step."""
    frame_stack: int = 4
    """Observations the network sees at once."""
    size: int = 84
    """Height and width of an observation."""
    mask_status_bar: bool = True
    """Paint score, coins and time black."""
    start_delay: int = 30
    """Each episode starts after 0 to this many frames without input."""
    sticky: float = 0.0
    """Chance that a frame repeats the buttons of the one before."""
    episode_timeout_steps: int = 1500
    """Truncate an episode after this many steps; 0 is never."""
    stagnation_limit: int = 250
    """Truncate after this many steps without new ground; 0 is never."""
