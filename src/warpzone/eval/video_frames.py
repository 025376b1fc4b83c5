"""Videos of an agent: one lane with overlays, or a mosaic of many; slow motion before a death."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from warpzone.env.stages import LONGEST_DELAY
from warpzone.eval.cases import Case
from warpzone.eval.overlay import ENDS, Panel, framed
from warpzone.media.pictures import enlarge, mosaic

if TYPE_CHECKING:
    from warpzone.eval.performance import Shot

Image = NDArray[np.uint8]

#: Frames of slow motion before a death.
BEFORE = 75
#: Frames for which the last picture stays.
HOLD = 45


def single(frames: Iterator[list[Shot]], panel: Panel, *, slow: int = 1) -> Iterator[Image]:
    """One lane, with what the panel shows; each of the last frames `slow` times if Mario dies."""
    waiting: deque[Image] = deque()
    end = ""
    for (shot,) in frames:
        end = shot.end
        waiting.append(panel.compose(shot))
        if len(waiting) > BEFORE:
            yield waiting.popleft()
    times = slow if end == "death" else 1
    last = None
    for picture in waiting:
        for _ in range(times):
            yield picture
        last = picture
    if last is not None:
        for _ in range(HOLD):
            yield last


def wall(
    frames: Iterator[list[Shot]], columns: int, scale: int, *, slow: int = 1
) -> Iterator[Image]:
    """All lanes at once; the border colour shows how a lane ended, and lanes that did not clear
    turn grey. Slow motion is that of the last lane to end, if it dies."""
    waiting: deque[Image] = deque()
    ended: dict[int, Image] = {}
    end = ""
    for shots in frames:
        screens = []
        for lane, shot in enumerate(shots):
            if shot.end and lane not in ended:
                ended[lane] = _last(shot)
                end = shot.end
            screens.append(ended.get(lane, shot.screen))
        waiting.append(enlarge(mosaic(screens, columns), scale))
        if len(waiting) > BEFORE:
            yield waiting.popleft()
    for picture in waiting:
        for _ in range(slow if end == "death" else 1):
            yield picture
    for _ in range(HOLD if waiting else 0):
        yield waiting[-1]


def _last(shot: Shot) -> Image:
    screen = shot.screen
    if shot.end != "flag":
        gray = screen.mean(-1, keepdims=True) * 0.6
        screen = np.broadcast_to(gray, screen.shape).astype(np.uint8)
    return framed(screen, ENDS[shot.end], 5)


def parse_mosaic(text: str) -> tuple[int, int]:
    """Columns and rows of `4x3`."""
    match = re.fullmatch(r"([1-9]\d?)x([1-9]\d?)", text.strip())
    if match is None or int(match[1]) * int(match[2]) > 256:
        raise ValueError(f"--mosaic is columns x rows such as 4x4, at most 256 lanes, not {text!r}")
    return int(match[1]), int(match[2])


def mosaic_cases(stages: Sequence[int], policy: str, delay: int, count: int) -> list[Case]:
    """As many cases as fit: all stages from one delay, then from the next one, and so on."""
    most = len(stages) * (LONGEST_DELAY + 1 - delay)
    if count > most:
        raise ValueError(
            f"a mosaic of {count} lanes needs more than the {most} starts there are; "
            "give more stages"
        )
    return [
        Case(stages[index % len(stages)], policy, delay + index // len(stages))
        for index in range(count)
    ]
