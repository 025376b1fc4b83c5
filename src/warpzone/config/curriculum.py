"""Which stages are drawn, and where episodes start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from warpzone.config.bounds import AtLeast, BelowOne, Refusal, Share


@dataclass(frozen=True)
class CurriculumConfig:
    """Which stages are drawn, and where episodes start."""

    curriculum: Literal["none", "clear-rate", "progress"] = "none"
    """Draw stages that are rarely cleared (clear-rate), or on which play changes (progress)."""
    curriculum_floor: Annotated[float, Share()] = 0.2
    """Share of the draws that goes to all stages alike."""
    curriculum_window: Annotated[int, AtLeast(1)] = 100
    """Episodes of a stage that its clear rate is about."""
    archive_share: Annotated[float, Share()] = 0.0
    """Share of episodes that start from moments of earlier ones instead of the stage's start."""
    archive_explore: Annotated[float, BelowOne("from some moments the policy plays on")] = 0.0
    """Share of these that begin with random buttons, so that the archive also grows elsewhere."""
    archive_cell: Annotated[int, AtLeast(1)] = 64
    """Pixels; the archive keeps one moment for each stretch of a map this long."""
    archive_size: Annotated[int, AtLeast(1)] = 512
    """Moments in the archive at most."""
    search_steps: Annotated[int, AtLeast(0)] = 0
    """Steps that a search without the network may take to find a way through a stage that no
    episode clears from its start; restarts then practise it backwards. 0: no search."""
    ways: str = ""
    """Ways that a course of `warpzone teach` found, by its folder or name; `shipped` are those of
    the package. They are practised from the beginning, like those that a search finds."""


def refusals(config: CurriculumConfig) -> Iterator[Refusal]:
    """What contradicts itself here."""
    yield (
        config.archive_explore > 0 and config.archive_share == 0,
        "--archive-explore is a share of the episodes of --archive-share, which is 0",
    )
    yield (
        config.search_steps > 0 and config.archive_share == 0,
        "--search-steps finds places for the episodes of --archive-share, which is 0",
    )
    yield (
        bool(config.ways) and config.archive_share == 0,
        "--ways has places for the episodes of --archive-share, which is 0",
    )
