"""Pictures of lanes at play."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_runs import tiny

from warpzone.observers.wall import write_wall
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
