"""Pictures of lanes at play."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.train.loop import Run
from warpzone.train.wall import FOLDER, LATEST, write_wall


@pytest.mark.parametrize(
    ("changes", "stage"), [({"stages": "4-2"}, "4-2"), ({"whole_game": True}, "1-1")], ids=str
)
def test_a_lane_is_shown_with_its_stage(
    tmp_path: Path, changes: dict[str, Any], stage: str
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), **changes))
    try:
        (run.folder.path / FOLDER).mkdir()
        write_wall(run, run._played(), 2, 4, 1)
    finally:
        run.close()
    header = json.loads((run.folder.path / FOLDER / LATEST).read_bytes().partition(b"\n")[0])
    assert [(lane["lane"], lane["stage"]) for lane in header["lanes"]] == [(0, stage), (3, stage)]
    assert all(lane["x"] > 0 for lane in header["lanes"])
