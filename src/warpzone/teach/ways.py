"""Ways to the flag, as courses write them into their folders for later ones. What trials find takes
them minutes, and does not depend on the agent; a later course tries it at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from warpzone.config import TrainConfig
from warpzone.env.stages import stage_name
from warpzone.eval.cases import LONGEST_DELAY
from warpzone.eval.evaluate import STEP_LIMIT
from warpzone.run.folder import RunFolder
from warpzone.run.names import CONFIG, WAYS
from warpzone.run.reader import RunReader
from warpzone.teach.lessons import Lesson
from warpzone.teach.places import Known

#: Rows that are read of a course, the newest: more than a long one writes.
MOST_ROWS = 20_000
#: What must be the same for a way to lead to the same place.
SAME = ("actions", "frame_skip", "rom")


def write_ways(folder: RunFolder, lessons: Iterable[Lesson]) -> None:
    """Notes the actions of lessons that begin at a stage's door, those that trials found."""
    rows = [
        {
            "stage": stage_name(lesson.stage),
            "start_delay": lesson.start_delay,
            "actions": lesson.actions.tolist(),
        }
        for lesson in lessons
        if not lesson.alone and lesson.memory is None
    ]
    folder.append(WAYS, rows)


def read_ways(
    run: Path, config: TrainConfig, stages: Sequence[int], count: int
) -> dict[int, Known]:
    """What a course found in these stages; `count` is the number of actions. ValueError if it is of
    another game than the one that this configuration plays, or damaged."""
    reader = RunReader(run).require()
    recorded = reader.document(CONFIG)
    rows = reader.newest_rows(WAYS, MOST_ROWS)
    if not rows:
        raise ValueError(f"{run} has no ways of a course")
    for name in SAME:
        # Without a ROM's name it is the European one.
        if (recorded.get(name) or "eu") != (getattr(config, name) or "eu"):
            raise ValueError(f"the ways of {run} are of another game: its {name} differs")
    wanted = {stage_name(stage): stage for stage in stages}
    known: dict[int, Known] = {}
    for row in rows:
        if not _is_way(row, count):
            raise ValueError(f"{run / WAYS} has a row that is no way")
        if (stage := wanted.get(row["stage"])) is not None:
            known.setdefault(stage, Known()).add_way(row["start_delay"], row["actions"])
    return known


def _is_way(row: dict[str, Any], count: int) -> bool:
    delay, actions = row.get("start_delay"), row.get("actions")
    return (
        isinstance(row.get("stage"), str)
        and type(delay) is int
        and 0 <= delay <= LONGEST_DELAY
        and isinstance(actions, list)
        and 0 < len(actions) <= STEP_LIMIT
        and all(type(action) is int and 0 <= action < count for action in actions)
    )
