"""Events from a run's files, and how they are drawn."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.maps.events import (
    Event,
    Restart,
    events_of,
    latest,
    read_events,
    read_restarts,
    stages_in,
)
from warpzone.maps.flight import AreaPicture
from warpzone.maps.heat import BIN, CHART, MARGIN, NONE_GAINS, PASSED, draw_heat, stacked
from warpzone.run.reader import RunReader

AREA = AreaPicture(1, 5, 0, np.full((208, 640, 3), 100, np.uint8))


def event(kind: str, x: int, **changes: Any) -> Event:
    values: dict[str, Any] = {
        "y": 79, "furthest_x": x, "area": (1, 5), "global_step": 10, "policy": "argmax",
    }  # fmt: skip
    return Event(kind=kind, x=x, **{**values, **changes})


def test_rows_of_evaluations_and_of_training(tmp_path: Path) -> None:
    rows = [
        {"stage": "1-1", "policy": "argmax", "reason": "stuck", "furthest_x": 300, "x": 290,
         "y": 80, "area_type": 1, "area_index": 5, "global_step": 4},
        {"stage": "1-1", "policy": "argmax", "reason": "death", "furthest_x": 500},
        {"stage": "1-2", "policy": "argmax", "reason": "flag", "furthest_x": 3000},
    ]  # fmt: skip
    text = "\n".join(map(json.dumps, rows)) + '\n{"stage": "1-1", "rea'
    (tmp_path / "evals.jsonl").write_text(text)
    stall, death = read_events(tmp_path, "1-1")
    assert (stall.kind, stall.x, stall.y, stall.area) == ("stall", 290, 80, (1, 5))
    assert (death.kind, death.x, death.y, death.area) == ("death", 500, None, None)
    assert stages_in(rows) == ["1-1", "1-2"]
    trained = {"stage": 1, "reason": "timeout", "furthest_x": 7}
    assert events_of([trained], "1-2")[0].kind == "stall"
    assert stages_in([trained, {"stage": -1}]) == ["1-1", "1-2"]
    assert RunReader(tmp_path).rows("nothing.jsonl") == []


def test_long_files_are_thinned_evenly(tmp_path: Path) -> None:
    file = tmp_path / "episodes.jsonl"
    file.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(1000)))
    kept = [row["n"] for row in RunReader(tmp_path).rows("episodes.jsonl", 100)]
    assert 50 <= len(kept) <= 100
    assert kept == list(range(0, 1000, kept[1]))


def test_the_newest_evaluation() -> None:
    stall, death = event("stall", 1, global_step=4), event("death", 1, global_step=None)
    assert latest([stall, death]) == [stall]


def test_ends_are_drawn_where_they_were() -> None:
    events = [event("death", 160), event("stall", 400, y=0), event("flag", 600)]
    picture = draw_heat(AREA, events, first=True)
    assert picture.shape == (208 + MARGIN + CHART, 640, 3)
    red = picture[255 - 79 - 32 + 16, 160 + 8]
    assert red[0] > 150
    assert red[0] > 2 * red[2]
    base = 208 + MARGIN + CHART - 2
    for place, channel in ((160, 0), (400, 0), (600, 1)):
        bar = picture[base, place // BIN * BIN + 2]
        assert bar[channel] == bar.max()
        assert bar.max() > 200
    assert (picture[base, 320] < 40).all()


def test_the_line_falls_where_episodes_end() -> None:
    picture = draw_heat(AREA, [event("death", 320, furthest_x=320)] * 3, first=True)
    chart = picture[208 + MARGIN :]
    blue = np.abs(chart.astype(int) - np.array(PASSED)).sum(-1) < 30
    heights = [int(np.flatnonzero(blue[:, x])[0]) for x in (100, 500)]
    assert heights[0] < 6
    assert heights[1] > CHART - 8


def test_events_of_other_areas_are_not_drawn_here() -> None:
    events = [event("death", 160, area=(2, 2))]
    picture = draw_heat(AREA, events, first=True)
    assert (picture[:208] == 75).all()


def test_places_of_the_archive_are_drawn_where_they_are() -> None:
    plain = draw_heat(AREA, [], first=True)

    def changed(*restarts: Restart) -> tuple[int, int, int]:
        """Where the picture differs: the middle of it, and how wide it is."""
        picture = draw_heat(AREA, [], first=True, restarts=restarts)
        rows, columns = np.nonzero((picture != plain).any(-1))
        return int(rows.mean()), int(columns.mean()), int(np.ptp(columns))

    y, x, width = changed(Restart(300, 79, (1, 5), 10, 0))
    assert (y, x) == (255 - 79 - 32 + 16, 300 + 8)
    # The largest are those where half of the attempts gain ground.
    assert changed(Restart(300, 79, (1, 5), 10, 5))[2] > width
    picture = draw_heat(AREA, [], first=True, restarts=[Restart(300, 79, (1, 5), 10, 0)])
    assert np.abs(picture[y, x].astype(int) - NONE_GAINS).max() < 60
    elsewhere = draw_heat(AREA, [], first=True, restarts=[Restart(300, 79, (0, 2), 10, 5)])
    assert (elsewhere == plain).all()


def test_places_of_a_strangers_archive(tmp_path: Path) -> None:
    good = [1, 1, 5, 300, 79, 10, 4, 0]
    bad = [good[:-1], [1, 1, 5, 300, 79, 3, 4, 0], [1.5, *good[1:]], [-1, *good[1:]], "x", None]
    far = [99, *good[1:]]
    (tmp_path / "archive.json").write_text(json.dumps({"moments": [*bad, far, good]}))
    assert read_restarts(tmp_path, "1-2") == [Restart(300, 79, (1, 5), 10, 4)]
    assert read_restarts(tmp_path, "1-1") == []
    (tmp_path / "archive.json").write_text('{"moments": 3}')
    assert read_restarts(tmp_path, "1-2") == []
    assert read_restarts(tmp_path / "nowhere", "1-2") == []


def test_training_time_has_a_strip() -> None:
    events = [event("death", 40 * step, global_step=step) for step in range(10)]
    picture = draw_heat(AREA, events, first=True)
    strip = picture[208 + 2 * MARGIN + CHART :]
    bright = strip[:, :, 0] > 100
    columns = [int(np.flatnonzero(row)[0]) for row in bright if row.any()]
    assert columns == sorted(columns)
    assert columns[-1] > columns[0] + 200


def test_pictures_below_each_other() -> None:
    both = stacked([np.zeros((10, 30, 3), np.uint8), np.full((5, 40, 3), 9, np.uint8)], gap=2)
    assert both.shape == (17, 40, 3)
    assert (both[12:] == 9).all()
