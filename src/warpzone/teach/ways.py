"""Ways to the flag, as courses write them into their folders for later ones. What trials find takes
them minutes, and does not depend on the agent; a later course tries it at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from warpzone import _engine
from warpzone.collect.search import place_keys
from warpzone.config import TrainConfig
from warpzone.env.infos import COLUMN
from warpzone.env.stages import LONGEST_DELAY, stage_name
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.run.folder import RunFolder
from warpzone.run.names import WAYS
from warpzone.run.recorded_ways import recorded_ways
from warpzone.teach.explorer import EVERY, LANES
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


def meet_ways(
    known: Mapping[int, Known],
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
) -> None:
    """Plays these ways as small Mario and notes the places that they come by: trials go along them
    from where an agent's path meets them."""
    ways = [(stage, *way) for stage, one in known.items() for way in one.whole]
    for first in range(0, len(ways), LANES):
        some = ways[first : first + LANES]
        cases = [Case(stage, "argmax", start_delay) for stage, start_delay, _ in some]
        lanes = EvalLanes(
            config, rom, native, cases, delays=(0, LONGEST_DELAY), time_limit=0, stagnation_limit=0
        )
        left = np.arange(len(some))
        with closing(lanes):
            for step in range(max(len(way) for _, _, way in some)):
                left = left[[len(some[lane][2]) > step for lane in left.tolist()]]
                if not len(left):
                    break
                actions = np.array([some[lane][2][step] for lane in left.tolist()])
                landing = lanes.step(actions, left)
                if (step + 1) % EVERY == 0:
                    state = landing.info[:, COLUMN["player_state"]]
                    keys = place_keys(landing.info)
                    for row in np.flatnonzero(state == _engine.PlayerState.IN_CONTROL).tolist():
                        stage, _, way = some[left[row]]
                        known[stage].meet(way, keys[row], step + 1)
                left = left[~(landing.terminated | landing.truncated)]
