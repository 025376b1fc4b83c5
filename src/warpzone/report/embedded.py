"""Pictures and videos inside the page."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.maps.cache import stage_areas
from warpzone.maps.events import Event, Restart
from warpzone.maps.heat import draw_heat, stacked
from warpzone.report.html import Markup, tag
from warpzone.run.opening import File, read_file

#: The second of a video that stands for it.
MOMENT = "#t=1"
VIDEO_TYPES = {".mp4": "video/mp4", ".gif": "image/gif"}


def heat_picture(
    stage: str,
    events: Sequence[Event],
    rom: bytes,
    native: _engine.NativeProgram | None,
    label: str,
    restarts: Sequence[Restart] = (),
) -> Markup:
    """The map of a stage with what happened on it."""
    areas = stage_areas(stage, rom, native)
    ended = {event.area for event in events}
    shown = [area for area in areas if area is areas[0] or area.key in ended]
    pictures = [
        draw_heat(area, events, first=area is areas[0], restarts=restarts) for area in shown
    ]
    image = tag("img", src=_png(stacked(pictures)), alt=label, loading="lazy")
    full = tag("label", tag("input", type="checkbox"), " full size", class_="dim")
    return tag("div", full, image, class_="map", tabindex=0, role="region", aria_label=label)


def _png(picture: NDArray[np.uint8]) -> str:
    from PIL import Image as Pillow

    held = io.BytesIO()
    image = Pillow.fromarray(picture).quantize(192, dither=Pillow.Dither.NONE)
    image.save(held, format="PNG", optimize=True)
    return data_url("image/png", held.getvalue())


def data_url(kind: str, content: bytes) -> str:
    """Content as part of the page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def video(run: Path, file: File, page: Path, budget: int) -> tuple[Markup, int]:
    """A video of a run inside the page while `budget` bytes allow it, else a link; the bytes it
    took."""
    path, size = run / file.name, file.bytes
    if size > budget:
        link = quote(os.path.relpath(path, page.parent))
        return tag("p", tag("a", path.name, href=link), f" ({size / 1e6:.1f} MB, linked)"), 0
    url = data_url(VIDEO_TYPES[path.suffix], read_file(run, file.name, size))
    if path.suffix == ".gif":
        shown = tag("img", src=url, alt=path.name)
    else:
        # With a moment in its address, a browser shows that picture before anybody plays it.
        shown = tag(
            "video", src=f"{url}{MOMENT}", controls="", muted="", playsinline="", preload="metadata"
        )
    return tag("figure", shown, tag("figcaption", path.name)), size
