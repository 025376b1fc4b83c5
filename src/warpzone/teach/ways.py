"""Ways to the flag, as courses write them into their folders for later ones. What trials find takes
them minutes, and does not depend on the agent; a later course tries it at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from warpzone.config import TrainConfig
from warpzone.env.stages import stage_name
from warpzone.run.folder import RunFolder
from warpzone.run.names import WAYS
from warpzone.run.recorded_ways import recorded_ways
from warpzone.teach.lessons import Lesson
from warpzone.teach.places import Known


def write_ways(folder: RunFolder, lessons: Iterable[Lesson]) -> None:
    """Notes the actions of lessons of single stages, those that trials found."""
    rows = [
        {
            "stage": stage_name(lesson.stage),
            "start_delay": lesson.start_delay,
            "actions": lesson.actions.tolist(),
        }
        for lesson in lessons
        if not lesson.alone
    ]
    folder.append(WAYS, rows)


def read_ways(
    run: Path, config: TrainConfig, stages: Sequence[int], count: int
) -> dict[int, Known]:
    """What a course found in these stages; see `recorded_ways`."""
    known: dict[int, Known] = {}
    for way in recorded_ways(run, config, stages, count):
        known.setdefault(way.stage, Known()).add_way(way.start_delay, way.actions)
    return known
