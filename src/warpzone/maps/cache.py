"""Maps of stages in the user's data folder: drawn once for each ROM, never part of the package."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from warpzone import _engine
from warpzone.env.stages import stage_index
from warpzone.maps.flight import AreaPicture
from warpzone.maps.stage import draw_stage
from warpzone.media.pictures import save_png
from warpzone.rom.paths import data_dir, make_private, write_atomic

INDEX = "index.json"
#: Increased when the pictures change.
VERSION = 1


def stage_areas(
    stage: str, rom: bytes, native: _engine.NativeProgram | None, *, fresh: bool = False
) -> list[AreaPicture]:
    """The areas of a stage, the one it starts in first; from the cache if they are there."""
    folder = map_folder(rom) / stage
    areas = None if fresh else _read(folder)
    if areas is None:
        areas = draw_stage(rom, native, stage_index(stage))
        _write(folder, areas)
    return areas


def map_folder(rom: bytes) -> Path:
    """Where the maps of a ROM are kept."""
    return data_dir() / "maps" / hashlib.sha256(rom).hexdigest()[:16]


def _write(folder: Path, areas: list[AreaPicture]) -> None:
    for place in (data_dir(), folder.parent.parent, folder.parent, folder):
        make_private(place)
    for area in areas:
        save_png(area.picture, folder / _name(area), colors=64)
    rows = [
        {"file": _name(a), "type": a.area_type, "index": a.area_index, "left": a.left}
        for a in areas
    ]
    # Written last, so that every picture in the index exists.
    write_atomic(folder / INDEX, json.dumps({"version": VERSION, "areas": rows}).encode())


def _read(folder: Path) -> list[AreaPicture] | None:
    from PIL import Image as Pillow

    try:
        document = json.loads((folder / INDEX).read_text())
        if document["version"] != VERSION:
            return None
        return [
            AreaPicture(
                int(row["type"]),
                int(row["index"]),
                int(row["left"]),
                np.asarray(Pillow.open(folder / Path(row["file"]).name).convert("RGB")),
            )
            for row in document["areas"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        # A defective cache is redrawn.
        return None


def _name(area: AreaPicture) -> str:
    return f"area-{area.area_type}-{area.area_index}.png"
