"""Maps: their size, that they are made of real frames, and the cache."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpzone import _engine
from warpzone.env.options import STATUS_BAR_LINES
from warpzone.env.stages import NUM_STAGES, stage_index, stage_name
from warpzone.env.vector import MarioVectorEnv
from warpzone.maps import cache
from warpzone.maps.flight import AreaPicture
from warpzone.maps.stage import draw_stage

GOLDEN = Path(__file__).parents[2] / "golden" / "maps.json"


@pytest.fixture(scope="module")
def maps(rom: bytes, native: Any) -> dict[str, list[AreaPicture]]:
    return {stage_name(index): draw_stage(rom, native, index) for index in range(NUM_STAGES)}


def test_every_stage_has_the_areas_it_should(maps: dict[str, list[AreaPicture]]) -> None:
    """Areas as (type, index, left, width). Where the screen stops by itself, the last pixels
    depend on how Mario came there."""
    golden = json.loads(GOLDEN.read_text())
    for stage, areas in maps.items():
        found = [[*area.key, area.left, area.picture.shape[1]] for area in areas]
        assert len(found) == len(golden[stage]), stage
        for row, expected in zip(found, golden[stage], strict=True):
            assert row[:3] == expected[:3], stage
            assert abs(row[3] - expected[3]) <= 4, stage


def test_maps_have_no_holes(maps: dict[str, list[AreaPicture]]) -> None:
    """Under a blue sky no column is black from top to bottom."""
    for stage in ("1-1", "1-3", "2-1", "4-1", "5-1", "8-1"):
        picture = maps[stage][0].picture
        assert picture.shape[0] == 240 - STATUS_BAR_LINES
        assert picture.any(axis=(0, 2)).all(), stage


@pytest.mark.parametrize("stage", ["1-1", "2-2", "3-1", "8-4"])
def test_a_map_is_what_a_player_sees(
    maps: dict[str, list[AreaPicture]], rom: bytes, stage: str
) -> None:
    """The screen of a lane that runs right, wherever it is, is that part of the map: all but
    Mario, enemies and what blinks."""
    env = MarioVectorEnv(1, stages=stage, rom=rom, start_delay=0, skip_cutscenes=False)
    env.reset(seed=0)
    area = maps[stage][0]
    alike = []
    for _ in range(25):
        env.step(np.array([4]))
        if env.info(0)["dying"]:
            break
        left = env.info(0)["screen_x"]
        screen = env.screen(0)[STATUS_BAR_LINES:]
        part = area.picture[:, left : left + 256]
        # The picture shows the scrolling of the frame before.
        shares = [
            (screen[:, : 256 - late] == part[:, late:][:, : 256 - late]).all(-1).mean()
            if late == 0
            else (screen[:, late:] == area.picture[:, left : left + 256 - late]).all(-1).mean()
            for late in range(5)
        ]
        alike.append(max(shares))
    env.close()
    assert np.mean(alike) > 0.95


def test_the_cache(rom: bytes, native: Any, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = cache.stage_areas("1-1", rom, native)
    calls: list[int] = []

    def draw(image: bytes, program: _engine.NativeProgram | None, stage: int) -> Any:
        calls.append(stage)
        return drawn

    monkeypatch.setattr(cache, "draw_stage", draw)
    cached = cache.stage_areas("1-1", rom, native)
    assert calls == []
    for first, second in zip(drawn, cached, strict=True):
        assert (first.key, first.left) == (second.key, second.left)
        assert (first.picture == second.picture).all()
    index = cache.map_folder(rom) / "1-1" / cache.INDEX
    assert folders in index.parents
    index.write_text("{half")
    cache.stage_areas("1-1", rom, native)
    (cache.map_folder(rom) / "1-1" / "area-1-5.png").write_bytes(b"")
    cache.stage_areas("1-1", rom, native)
    assert calls == [stage_index("1-1")] * 2
