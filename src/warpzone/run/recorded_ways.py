"""Ways to the flag that a course or a search found, in its folder. They depend on the game and not
on an agent, so that later courses and runs may begin with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warpzone.config import TrainConfig
from warpzone.env.stages import LONGEST_DELAY, stage_name
from warpzone.run.names import CONFIG, WAYS
from warpzone.run.reader import RunReader, named_run

#: The ways that come with the package, and what `--ways` calls them.
PACKAGE = Path(__file__).parent.parent / "ways"
SHIPPED = "shipped"
#: Rows that are read of a course, the newest: more than a long one writes.
MOST_ROWS = 20_000
#: Steps of a way; evaluations have no more.
LONGEST_WAY = 3000
#: What must be the same for a way to lead to the same place.
SAME = ("actions", "frame_skip", "rom")


class OtherGameError(ValueError):
    """Ways of another game than the one that is played."""


class RecordedWay(NamedTuple):
    """Actions from a stage's door to its flag, after so many frames of nothing, as small Mario."""

    stage: int
    start_delay: int
    actions: list[int]


def named_ways(word: str, root: Path) -> Path:
    """The folder that `--ways` names: a course's, by path or by name below `root`, or that of the
    package."""
    return PACKAGE if word == SHIPPED else named_run(word, root)


def known_ways(config: TrainConfig, stages: Sequence[int], count: int) -> list[RecordedWay]:
    """The ways that a run practises by its `--ways`. A preset names those of the package, whatever
    else a run changes: they are none for another game."""
    try:
        return recorded_ways(named_ways(config.ways, Path(config.runs_dir)), config, stages, count)
    except OtherGameError:
        if config.ways == SHIPPED:
            return []
        raise


def recorded_ways(
    run: Path, config: TrainConfig, stages: Sequence[int], count: int
) -> list[RecordedWay]:
    """What a course found in these stages, in its order; `count` is the number of actions.
    OtherGameError if it is of another game than this configuration's, ValueError if damaged."""
    reader = RunReader(run).require()
    recorded = reader.document(CONFIG)
    rows = reader.newest_rows(WAYS, MOST_ROWS)
    if not rows:
        raise ValueError(f"{run} has no ways of a course")
    for name in SAME:
        # Without a ROM's name it is the European one.
        if (recorded.get(name) or "eu") != (getattr(config, name) or "eu"):
            raise OtherGameError(f"the ways of {run} are of another game: its {name} differs")
    wanted = {stage_name(stage): stage for stage in stages}
    found = []
    for row in rows:
        if not _is_way(row, count):
            raise ValueError(f"{run / WAYS} has a row that is no way")
        if (stage := wanted.get(row["stage"])) is not None:
            found.append(RecordedWay(stage, row["start_delay"], row["actions"]))
    return found


def _is_way(row: dict[str, Any], count: int) -> bool:
    delay, actions = row.get("start_delay"), row.get("actions")
    return (
        isinstance(row.get("stage"), str)
        and type(delay) is int
        and 0 <= delay <= LONGEST_DELAY
        and isinstance(actions, list)
        and 0 < len(actions) <= LONGEST_WAY
        and all(type(action) is int and 0 <= action < count for action in actions)
    )
