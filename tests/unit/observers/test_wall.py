"""Pictures of lanes at play."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import tiny

from warpzone.dashboard.wall_file import WallFile
from warpzone.observers.wall import WallObserver, has_screens, write_wall
from warpzone.run.names import WALL, WALL_PICTURES
from warpzone.train.loop import Run


@pytest.mark.parametrize(
    ("changes", "stage"), [({"stages": "4-2"}, "4-2"), ({"whole_game": True}, "1-1")], ids=str
)
def test_a_lane_is_shown_with_its_stage(
    tmp_path: Path, changes: dict[str, Any], stage: str
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), **changes))
    try:
        (run.folder.path / WALL).mkdir()
        write_wall(run, run.driver.play(), 2, 4, 1)
    finally:
        run.close()
    header = json.loads((run.folder.path / WALL / WALL_PICTURES).read_bytes().partition(b"\n")[0])
    assert [(lane["lane"], lane["stage"]) for lane in header["lanes"]] == [(0, stage), (3, stage)]
    assert all(lane["x"] > 0 for lane in header["lanes"])


def test_a_lane_is_one_picture_whatever_it_sees(tmp_path: Path) -> None:
    """Not three, with colours; and what the games begin with is as bright as in gray."""
    found = []
    for name, changes in {"gray": {}, "color": {"color": True}}.items():
        run = Run(tiny(runs_dir=str(tmp_path), run_name=name, **changes))
        try:
            (run.folder.path / WALL).mkdir()
            write_wall(run, run.driver.play(), 2, 8, 1)
        finally:
            run.close()
        text, _, pixels = (run.folder.path / WALL / WALL_PICTURES).read_bytes().partition(b"\n")
        assert json.loads(text)["shape"] == [8, 2, 36, 36]
        found.append(np.frombuffer(pixels, np.uint8).reshape(8, 2, 36, 36)[0].astype(int))
    run = Run(tiny(runs_dir=str(tmp_path), run_name="ram", observation="ram"))
    try:
        (run.folder.path / WALL).mkdir()
        write_wall(run, run.driver.play(), 2, 8, 1)
    finally:
        run.close()
    text = (run.folder.path / WALL / WALL_PICTURES).read_bytes().partition(b"\n")[0]
    assert json.loads(text)["shape"] == [8, 2, 32, 64]
    assert found[0].std() > 10
    assert abs(found[0] - found[1]).max() <= 3


def test_the_games_own_screens_for_those_who_ask(tmp_path: Path) -> None:
    run = Run(tiny(runs_dir=str(tmp_path)))
    wall = WallFile(run.folder.path)
    observer = WallObserver(2, 15.0)
    try:
        collected = run.driver.play()
        for screens in (False, True):
            wall.want(screens=screens)
            observer._last = 0.0
            observer.updated(run, {}, collected)
            wall.read()
            content = (run.folder.path / WALL / WALL_PICTURES).read_bytes()
            text, _, pixels = content.partition(b"\n")
            header = json.loads(text)
            assert header.get("colors", 1) == (3 if screens else 1)
        # The server passes it on, and it is what the lanes show.
        assert wall.version == 2
        assert header["shape"] == [1, 2, 240, 256]
        shown = np.frombuffer(pixels, np.uint8).reshape(2, 240, 256, 3)
        first, last = run.collector.groups[0], run.collector.groups[1]
        assert (shown[0] == first.vector.screen(0)).all()
        assert (shown[1] == last.vector.screen(last.count - 1)).all()
        # Not from lanes that are being played.
        run.between = False
        assert not has_screens(run)
    finally:
        run.close()
