"""Videos of the agent while it learns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from warpzone.config.bounds import AtLeast


@dataclass(frozen=True)
class VideoConfig:
    """Videos of the agent while it learns."""

    video_interval: Annotated[int, AtLeast(0)] = 0
    """Write a video of the argmax policy every this many steps, into the run's videos; 0 never."""
    video_overlay: str = "all"
    """What videos show beside the game: all, none, or some of buttons,value,policy,view."""
