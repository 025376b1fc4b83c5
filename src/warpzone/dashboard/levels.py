"""The picture of a stage that deaths are drawn on, where this machine has a ROM to make it from."""

from __future__ import annotations

import io
import logging
from functools import lru_cache
from typing import Any

LOG = logging.getLogger("warpzone.dashboard")


@lru_cache(maxsize=32)
def level_map(stage: str) -> tuple[dict[str, Any], bytes]:
    """A header with the x of the level that the picture ends at, and the picture; the page draws a
    plain strip where there is none."""
    from PIL import Image

    from warpzone import rom
    from warpzone.maps.cache import stage_areas
    from warpzone.rom import native

    try:
        image = rom.find(None)
        area = stage_areas(stage, image, native.load(image))[0]
    except (OSError, ValueError, RuntimeError, IndexError) as error:
        LOG.warning("no map of %s: %s", stage, error)
        return {"stage": stage, "width": 0, "left": 0}, b""
    out = io.BytesIO()
    Image.fromarray(area.picture).quantize(64, dither=Image.Dither.NONE).save(out, "PNG")
    width = area.left + area.picture.shape[1]
    header = {"stage": stage, "width": width, "left": area.left, "area": list(area.key)}
    return {**header, "kind": "image/png"}, out.getvalue()
