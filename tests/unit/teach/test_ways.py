"""What courses found, for later ones."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import tiny

from warpzone import rom
from warpzone._engine import PlayerState
from warpzone.collect.search import place_keys
from warpzone.env.infos import COLUMN
from warpzone.env.stages import parse_stages
from warpzone.eval.cases import Case
from warpzone.eval.eval_lanes import EvalLanes
from warpzone.rom import native
from warpzone.run.folder import RunFolder
from warpzone.run.names import CONFIG, WAYS
from warpzone.run.recorded_ways import recorded_ways
from warpzone.teach.explorer import EVERY
from warpzone.teach.lessons import Lesson, Step, make_lesson
from warpzone.teach.places import Known, Place
from warpzone.teach.places import Path as Trodden
from warpzone.teach.ways import meet_ways, read_ways, write_ways

FIRST, SECOND = 3, 31
WAYS_KEPT = Path(__file__).parents[3] / "benchmarks" / "ways"


def place_of(key: tuple[int, ...]) -> Place:
    return Place(key, b"", (), None, 0, 1)


def lesson(stage: int, delay: int, actions: list[int], shown: bool = True) -> Lesson:
    row = np.zeros(2, np.float16)
    return make_lesson(stage, delay, [Step(row, action, shown, row, 0.0) for action in actions])


def course(folder: Path, lessons: list[Lesson], **changes: Any) -> Path:
    """The folder of a course that has found these."""
    config = tiny(runs_dir=str(folder), run_name="course", **changes)
    run = RunFolder.create(config)
    try:
        run.write_config(config)
        write_ways(run, lessons)
    finally:
        run.close()
    return run.path


def test_what_was_written_is_known(tmp_path: Path) -> None:
    found = [
        lesson(FIRST, 7, [1, 2, 3]),
        lesson(FIRST, 120, [4]),
        lesson(SECOND, 0, [0, 0]),
        # The agent does this alone.
        lesson(FIRST, 8, [5], shown=False),
    ]
    path = course(tmp_path, found)
    known = read_ways(path, tiny(), [FIRST, 5], 7)
    assert known.keys() == {FIRST}
    assert known[FIRST].ways(0) == [[4], [1, 2, 3]]
    assert read_ways(path, tiny(), [SECOND], 7)[SECOND].ways(0) == [[0, 0]]


GOOD = {"stage": "1-4", "start_delay": 3, "actions": [1, 2]}


@pytest.mark.parametrize(
    "change",
    [
        {"stage": 3},
        {"start_delay": 121},
        {"start_delay": -1},
        {"start_delay": True},
        {"start_delay": None},
        {"actions": []},
        {"actions": [7]},
        {"actions": [-1]},
        {"actions": [1.0]},
        {"actions": "11"},
        {"actions": [1] * 100_000},
    ],
)
def test_rows_that_are_no_ways_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = course(tmp_path, [])
    (path / WAYS).write_text(json.dumps(GOOD) + "\n")
    assert read_ways(path, tiny(), [FIRST], 7)[FIRST].ways(0) == [[1, 2]]
    (path / WAYS).write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, **change}) + "\n")
    with pytest.raises(ValueError, match="has a row that is no way"):
        read_ways(path, tiny(), [FIRST], 7)


@pytest.mark.parametrize("change", [{"frame_skip": 2}, {"actions": "right"}, {"rom": "world"}])
def test_ways_of_another_game_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = course(tmp_path, [lesson(FIRST, 7, [1])])
    (name,) = change
    with pytest.raises(ValueError, match=f"of another game: its {name} differs"):
        read_ways(path, tiny(**change), [FIRST], 7)


def test_the_european_game_is_the_usual_one(tmp_path: Path) -> None:
    path = course(tmp_path, [lesson(FIRST, 7, [1])])
    assert read_ways(path, tiny(rom="eu"), [FIRST], 7)[FIRST].ways(0) == [[1]]


def test_trials_go_along_recorded_ways_from_places_that_these_come_by() -> None:
    """From each place that a lane, stepped alone, comes by while Mario obeys, and from no other."""
    castle = parse_stages("8-4")[0]
    config = tiny(**json.loads((WAYS_KEPT / CONFIG).read_text()))
    image = rom.find(config.rom)
    known = {castle: Known()}
    for one in recorded_ways(WAYS_KEPT, config, [castle], 12)[-3:]:
        known[castle].add_way(one.start_delay, one.actions)
    ways = known[castle].whole
    meet_ways(known, config, image, native.load(image))
    expected: dict[tuple[int, ...], list[tuple[list[int], int]]] = {}
    skipped = 0
    for start_delay, way in ways:
        case = Case(castle, "argmax", start_delay)
        lanes = EvalLanes(config, image, native.load(image), [case], stagnation_limit=0)
        for depth, action in enumerate(way, 1):
            info = lanes.step(np.array([action]), np.zeros(1, np.int64)).info
            obeys = info[0, COLUMN["player_state"]] == PlayerState.IN_CONTROL
            skipped += not obeys
            if depth % EVERY == 0 and obeys:
                expected.setdefault(place_keys(info)[0], []).append((way, depth))
        lanes.close()
    # In pipes he does not.
    assert skipped
    random = np.random.default_rng(0)
    for key, all_of in expected.items():
        path = Trodden([place_of(key)], 0, 0)
        drawn = [known[castle].join(path, random) for _ in range(40)]
        for joined in drawn:
            assert joined is not None
            assert any(joined[1] == way[depth : depth + len(joined[1])] for way, depth in all_of)
    nowhere = Trodden([place_of((9, 9, 9, 9, 9, 9, 9, 9, 9))], 0, 0)
    assert known[castle].join(nowhere, random) is None
    assert set(known[castle]._joined) == set(expected)


def test_the_ways_of_the_benchmarks_lead_to_the_flag() -> None:
    """With the last of their steps, from the start delay that they say."""
    rows = [json.loads(line) for line in (WAYS_KEPT / WAYS).read_text().splitlines()]
    assert sum(row["stage"] == "8-4" for row in rows) > 40
    config = json.loads((WAYS_KEPT / CONFIG).read_text())
    image = rom.find(config["rom"])
    cases = [Case(parse_stages(row["stage"])[0], "argmax", row["start_delay"]) for row in rows]
    lanes = EvalLanes(tiny(**config), image, native.load(image), cases, stagnation_limit=0)
    left = {lane: row["actions"] for lane, row in enumerate(rows)}
    try:
        for step in range(max(map(len, left.values()))):
            playing = np.array(sorted(left))
            landing = lanes.step(np.array([left[lane][step] for lane in playing]), playing)
            ended = landing.terminated | landing.truncated
            for index, lane in enumerate(playing.tolist()):
                assert ended[index] == (step + 1 == len(left[lane])), rows[lane]["start_delay"]
                if ended[index]:
                    assert landing.info[index, COLUMN["flag_get"]]
                    del left[lane]
    finally:
        lanes.close()
    assert not left


def test_runs_without_ways_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no ways of a course"):
        read_ways(course(tmp_path, []), tiny(), [FIRST], 7)
    with pytest.raises((ValueError, OSError)):
        read_ways(tmp_path / "nothing", tiny(), [FIRST], 7)
