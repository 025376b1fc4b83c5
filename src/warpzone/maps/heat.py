"""Drawing on a map where episodes died, stalled and passed, and how that changed over training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from PIL import ImageDraw

from warpzone.maps.events import Event, Restart
from warpzone.maps.flight import AreaPicture

Image = NDArray[np.uint8]

#: Pixels of a map in one bar, and the rows of the strip over time.
BIN = 16
ROWS = 24
ROW_HEIGHT = 4
CHART = 72
MARGIN = 6
#: Lines between the top of the screen and that of a map.
ABOVE = 32
INK = (230, 230, 230)
PAPER = (24, 26, 32)
COLOURS = {"death": (255, 70, 60), "stall": (255, 205, 60), "flag": (90, 220, 120)}
PASSED = (110, 180, 255)
#: Of a place where episodes may begin: nobody has tried, and no or every attempt gains ground.
UNTRIED = (255, 255, 255)
NONE_GAINS, ALL_GAIN = (255, 90, 200), (90, 240, 255)


def draw_heat(
    area: AreaPicture, events: Sequence[Event], *, first: bool, restarts: Sequence[Restart] = ()
) -> Image:
    """The map with a dot for every end, bars of ends below it, the share of episodes that came
    past each place, and, where events come from several evaluations, a strip over the time of
    training. `first`: whether the area is the one that the stage starts in. restarts: places
    where episodes may begin, drawn as diamonds."""
    here = [event for event in events if event.area == area.key or (first and event.area is None)]
    height, width = area.picture.shape[:2]
    moments = len({event.global_step for event in here})
    strip = min(ROWS, moments) * ROW_HEIGHT + MARGIN if moments > 2 else 0
    canvas = Pillow.new("RGB", (width, height + MARGIN + CHART + strip), PAPER)
    canvas.paste(Pillow.fromarray(area.picture // 4 * 3), (0, 0))
    draw = ImageDraw.Draw(canvas, "RGBA")
    _dots(draw, area, here, height)
    _diamonds(draw, area, [one for one in restarts if one.area == area.key], height)
    counts = _counts(area, here, width)
    _bars(draw, counts, height + MARGIN)
    if first:
        _passed(draw, area, events, width, height + MARGIN)
    if strip:
        _over_time(draw, area, here, width, height + 2 * MARGIN + CHART, min(ROWS, moments))
    return np.asarray(canvas)


def _dots(
    draw: ImageDraw.ImageDraw, area: AreaPicture, events: Sequence[Event], height: int
) -> None:
    opacity = max(50, 220 - 2 * len(events))
    for event in events:
        if event.kind == "flag":
            continue
        x = event.x - area.left + 8
        y = height - 24 if event.y is None else _row(event.y, height)
        colour = (*COLOURS[event.kind], opacity)
        if event.kind == "death":
            draw.ellipse((x - 6, y - 6, x + 6, y + 6), fill=colour, outline=(0, 0, 0, opacity))
        else:
            draw.rectangle((x - 5, y - 5, x + 5, y + 5), fill=colour, outline=(0, 0, 0, opacity))


def _row(y: int, height: int) -> int:
    """The line of a map for a height above the bottom of the screen."""
    return min(max(255 - y - ABOVE + 16, 6), height - 6)


def _diamonds(
    draw: ImageDraw.ImageDraw, area: AreaPicture, restarts: Sequence[Restart], height: int
) -> None:
    """Where most practice is worth most, half of the attempts gain ground: those are largest."""
    for one in restarts:
        x, y = one.x - area.left + 8, _row(one.y, height)
        share = one.share
        size = 3 if share is None else 3 + round(12 * share * (1 - share))
        colour = UNTRIED if share is None else _between(NONE_GAINS, ALL_GAIN, share)
        corners = [(x - size, y), (x, y - size), (x + size, y), (x, y + size)]
        draw.polygon(corners, fill=(*colour, 190), outline=(0, 0, 0, 220))


def _between(low: tuple[int, ...], high: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(round(a + share * (b - a)) for a, b in zip(low, high, strict=True))


def _counts(area: AreaPicture, events: Sequence[Event], width: int) -> dict[str, list[int]]:
    bins = -(-width // BIN)
    counts = {kind: [0] * bins for kind in COLOURS}
    for event in events:
        place = (event.x - area.left) // BIN
        counts[event.kind][min(max(place, 0), bins - 1)] += 1
    return counts


def _bars(draw: ImageDraw.ImageDraw, counts: dict[str, list[int]], top: int) -> None:
    """Ends in each bin, as parts of the highest bar."""
    most = max((sum(column) for column in zip(*counts.values(), strict=True)), default=0)
    if not most:
        return
    for place in range(len(counts["death"])):
        base = float(top + CHART)
        for kind, colour in COLOURS.items():
            size = counts[kind][place] / most * (CHART - 4)
            if size:
                left = place * BIN
                draw.rectangle((left, base - size, left + BIN - 2, base), fill=colour)
                base -= size


def _passed(
    draw: ImageDraw.ImageDraw, area: AreaPicture, events: Sequence[Event], width: int, top: int
) -> None:
    """The share of episodes that passed each place; leaving the area counts as passing."""
    if not events:
        return
    elsewhere = width + area.left
    reached = np.array(
        [
            elsewhere
            if event.kind == "flag" or event.area not in (None, area.key)
            else event.furthest_x
            for event in events
        ]
    )
    places = np.arange(0, width, BIN)
    shares = [(reached >= place + area.left).mean() for place in places]
    points = [
        (float(place), top + 2 + (1 - share) * (CHART - 4))
        for place, share in zip(places.tolist(), shares, strict=True)
    ]
    draw.line([*points, (float(width), points[-1][1])], fill=(*PASSED, 255), width=2)


def _over_time(
    draw: ImageDraw.ImageDraw,
    area: AreaPicture,
    events: Sequence[Event],
    width: int,
    top: int,
    count: int,
) -> None:
    """One row for each part of the training, the oldest on top: how brightly a place glows says
    which share of that time's episodes ended there."""
    last = max(event.global_step or 0 for event in events) + 1
    rows: list[list[Event]] = [[] for _ in range(count)]
    for event in events:
        rows[(event.global_step or 0) * count // last].append(event)
    for index, row in enumerate(rows):
        y = top + index * ROW_HEIGHT
        for kind, counts in _counts(area, row, width).items():
            for place, ends in enumerate(counts):
                if ends:
                    glow = min(255, 60 + int(600 * ends / len(row)))
                    left = place * BIN
                    draw.rectangle(
                        (left, y, left + BIN - 1, y + ROW_HEIGHT - 1),
                        fill=(*COLOURS[kind], glow),
                    )


def stacked(pictures: Sequence[Image], gap: int = 8) -> Image:
    """Pictures below each other, left edges in line."""
    width = max(picture.shape[1] for picture in pictures)
    height = sum(picture.shape[0] + gap for picture in pictures) - gap
    canvas: Image = np.full((height, width, 3), PAPER, np.uint8)
    top = 0
    for picture in pictures:
        canvas[top : top + picture.shape[0], : picture.shape[1]] = picture
        top += picture.shape[0] + gap
    return canvas
