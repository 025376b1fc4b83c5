"""Charts of searches: bars and parallel coordinates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from warpzone.report.charts import HEIGHT, PALETTE, WIDTH, short
from warpzone.report.html import Markup, tag


@dataclass(frozen=True)
class Axis:
    """One parameter, or the value of a trial."""

    name: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    choices: tuple[Any, ...] = ()

    def place(self, value: Any) -> float | None:
        """Where a value is, from 0 to 1; None if it is on no place of the axis."""
        if self.choices:
            if value not in self.choices:
                return None
            return (self.choices.index(value) + 0.5) / len(self.choices)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        low, high = self.low, self.high
        if self.log and min(low, high, value) > 0:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (float(value) - low) / ((high - low) or 1.0)
        return min(1.0, max(0.0, share))

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Places and what is written there."""
        if self.choices:
            return [(self.place(value) or 0.0, str(value)) for value in self.choices]
        return [(0.0, short(self.low)), (1.0, short(self.high))]


def bar_chart(title: str, shares: Mapping[str, float]) -> Markup:
    """Horizontal bars, the largest first."""
    if not shares:
        empty = tag("p", "too few trials are complete", class_="empty")
        return tag("figure", tag("figcaption", title), empty)
    top = max(shares.values()) or 1.0
    line, left = 24, 170
    parts = []
    for row, (name, share) in enumerate(sorted(shares.items(), key=lambda item: -item[1])):
        y = row * line
        width = (WIDTH - left - 50) * share / top
        parts += [
            tag("text", name, x=left - 8, y=y + 16, text_anchor="end"),
            tag("rect", x=left, y=y + 4, width=f"{width:.1f}", height=line - 8, fill=PALETTE[0]),
            tag("text", f"{share:.2f}", x=left + width + 6, y=y + 16),
        ]
    svg = _svg(parts, WIDTH, line * len(shares) + 4, title)
    return tag("figure", tag("figcaption", title), svg)


def parallel_chart(
    title: str, axes: Sequence[Axis], lines: Sequence[tuple[str, Sequence[Any], float]]
) -> Markup:
    """One line for each trial through its values, coloured from red (bad, 0) to green (good, 1). A
    line skips axes on which it has no value."""
    if len(axes) < 2 or not lines:
        empty = tag("p", "no trial has ended yet", class_="empty")
        return tag("figure", tag("figcaption", title), empty)
    width = max(WIDTH, 110 * len(axes))
    top, bottom, side = 34, HEIGHT + 40, 60
    xs = [side + (width - 2 * side) * i / (len(axes) - 1) for i in range(len(axes))]
    parts = []
    for name, values, good in sorted(lines, key=lambda line: line[2]):
        places = [axis.place(value) for axis, value in zip(axes, values, strict=True)]
        points = " ".join(
            f"{x:.1f},{bottom - place * (bottom - top):.1f}"
            for x, place in zip(xs, places, strict=True)
            if place is not None
        )
        colour = f"hsl({120 * good:.0f} 62% 42%)"
        parts.append(
            tag(
                "polyline", tag("title", name), points=points, fill="none", stroke=colour,
                stroke_width=1.6, stroke_opacity=0.75,
            )
        )  # fmt: skip
    for x, axis in zip(xs, axes, strict=True):
        parts.append(tag("line", x1=x, x2=x, y1=top, y2=bottom, class_="rule"))
        parts.append(tag("text", axis.name, x=x, y=14, text_anchor="middle"))
        for place, label in axis.marks:
            y = bottom - place * (bottom - top)
            parts.append(tag("text", label, x=x + 4, y=y + (12 if place == 0 else -2)))
    inside = _svg(parts, width, bottom + 18, title)
    return tag("figure", tag("figcaption", title), tag("div", inside, class_="wide"))


def _svg(parts: Sequence[Markup], width: float, height: float, label: str) -> Markup:
    return tag(
        "svg", *parts, viewBox=f"0 0 {width} {height}", class_="chart", role="img",
        aria_label=label,
    )  # fmt: skip
