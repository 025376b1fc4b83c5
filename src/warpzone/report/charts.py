"""Charts as inline SVG: lines, stacked shares, and the board of all stages."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10

from warpzone.env.stages import STAGES_PER_WORLD, WORLDS
from warpzone.report.html import Markup, join, tag

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 66, 14, 14, 46
#: More points than this cannot be told apart in a chart of this width.
MOST_POINTS = 600
#: Colours for light and dark backgrounds, and for most kinds of colour blindness.
PALETTE = ("#3b82f6", "#e4572e", "#17a673", "#a855f7", "#d99a00", "#0ea5b7", "#c026a3", "#7a8899")
#: Parts of a whole, in colours that no run has.
PARTS = ("#5b6c8f", "#a9bcd6", "#6f8f7a", "#b5cdb0", "#a98f6f", "#dcc9a0", "#8a7a9b", "#c9bcd6")

STRANGE = "#7a8899"


def line_chart(
    title: str,
    series: Mapping[str, Points],
    *,
    unit: str = "",
    top: float | None = None,
    runs: Mapping[str, int] | None = None,
    dashed: Collection[str] = (),
) -> Markup:
    """Curves over steps; `top` fixes the upper end (1 for shares). A colour means the same run in
    all charts: `runs` says whose each curve is, if not one each; `dashed` curves share it."""
    shown = {name: thinned(points) for name, points in series.items() if points}
    if not shown:
        return tag("figure", tag("figcaption", title), tag("p", "no data yet", class_="empty"))
    xs = [x for points in shown.values() for x, _ in points]
    ys = [y for points in shown.values() for _, y in points]
    frame = _Frame(0.0, max(xs) or 1.0, min(0.0, *ys), top if top is not None else max(ys))
    parts = [*frame.axes(percent=top == 1)]
    # By the place among all curves, so that a run without data leaves the others' colours alone.
    order = runs if runs is not None else {name: index for index, name in enumerate(series)}
    colours = {name: PALETTE[order[name] % len(PALETTE)] for name in shown}
    for name, points in shown.items():
        colour = colours[name]
        path = " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)
        parts.append(
            tag(
                "polyline",
                tag("title", name),
                points=path,
                fill="none",
                stroke=colour,
                stroke_width=1.8,
                **({"stroke_dasharray": "7 5"} if name in dashed else {}),
            )
        )
        x, y = points[-1]
        parts.append(
            tag("circle", cx=f"{frame.x(x):.1f}", cy=f"{frame.y(y):.1f}", r=3, fill=colour)
        )
    caption = f"{title} ({unit})" if unit else title
    return tag("figure", tag("figcaption", caption), _svg(parts, caption), legend(colours, dashed))


def stacked_chart(title: str, series: Mapping[str, Points]) -> Markup:
    """Shares of a whole over steps, one above the other; all series have the same steps."""
    names = [name for name, points in series.items() if points]
    if not names:
        return tag("figure", tag("figcaption", title), tag("p", "no data yet", class_="empty"))
    thin = {name: thinned(series[name]) for name in names}
    xs = [x for x, _ in thin[names[0]]]
    frame = _Frame(0.0, max(xs) or 1.0, 0.0, 1.0)
    base = [0.0] * len(xs)
    totals = [sum(thin[name][i][1] for name in names) or 1.0 for i in range(len(xs))]
    parts = []
    for index, name in enumerate(names):
        upper = [low + thin[name][i][1] / totals[i] for i, low in enumerate(base)]
        there = [f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in zip(xs, upper, strict=True)]
        back = [f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in zip(xs, base, strict=True)]
        colour = PARTS[index % len(PARTS)]
        path = " ".join([*there, *reversed(back)])
        parts.append(tag("polygon", tag("title", name), points=path, fill=colour))
        base = upper
    parts += frame.axes(percent=True)
    colours = {name: PARTS[index % len(PARTS)] for index, name in enumerate(names)}
    return tag("figure", tag("figcaption", title), _svg(parts, title), legend(colours))


def legend(colours: Mapping[str, str], dashed: Collection[str] = ()) -> Markup:
    """The legend: names and their colours."""
    items = [
        tag(
            "span",
            tag("i", style=f"background:{colour}", class_="dash" if name in dashed else "full"),
            name,
            class_="key",
        )
        for name, colour in colours.items()
    ]
    return tag("div", *items, class_="legend")


@dataclass(frozen=True)
class Cell:
    """What the board says about a stage."""

    #: How often it is cleared.
    rate: float
    #: What the rate is of.
    said: str
    #: The line below the rate.
    below: str = ""
    #: Clear rates so far, oldest first.
    trend: Sequence[float] = ()
    #: Where most episodes fail.
    worst_x: int | None = None
    #: Whether it was played without having been trained on, and not cleared.
    strange: bool = False


def stage_board(cells: Mapping[str, Cell]) -> Markup:
    """Worlds from left to right, stages from top to bottom, coloured by clear rate. A stage without
    a cell was not played."""
    size, gap, left, top = 82, 4, 28, 22
    parts = [
        tag("text", str(w + 1), x=left + w * size + size / 2, y=14, text_anchor="middle")
        for w in range(WORLDS)
    ]
    for level in range(STAGES_PER_WORLD):
        y = top + level * size
        parts.append(tag("text", f"-{level + 1}", x=4, y=y + size / 2))
        for world in range(WORLDS):
            name = f"{world + 1}-{level + 1}"
            parts.append(_cell(name, cells.get(name), left + world * size, y, size - gap))
    width, height = left + WORLDS * size, top + STAGES_PER_WORLD * size
    return tag(
        "svg", *parts, viewBox=f"0 0 {width} {height}", class_="grid", role="img",
        aria_label="clear rate of each stage",
    )  # fmt: skip


def _cell(name: str, cell: Cell | None, x: float, y: float, size: float) -> Markup:
    centre = x + size / 2
    if cell is None:
        box = tag("rect", x=x, y=y, width=size, height=size, rx=6, class_="untested")
        label = tag("text", name, x=centre, y=y + size / 2 + 4, text_anchor="middle", class_="dim")
        return tag("g", tag("title", f"{name}: not played"), box, label)
    fill = f"hsl({120 * cell.rate:.0f} 62% {42 if cell.rate else 38}%)"
    fill = STRANGE if cell.strange else fill
    place = "" if cell.worst_x is None else f"x {cell.worst_x}"
    said = f"{name}: {cell.said}" + (f"; most fail at x {cell.worst_x}" if place else "")
    lines = [(16, "on", name), (35, "on big", f"{cell.rate:.0%}"), (49, "on small", cell.below)]
    lines.append((73, "on small", place))
    parts = [
        tag("text", text, x=centre, y=y + down, text_anchor="middle", class_=kind)
        for down, kind, text in lines
        if text
    ]
    if len(cell.trend) > 1:
        step = (size - 20) / (len(cell.trend) - 1)
        points = [
            f"{x + 10 + step * index:.1f},{y + 62 - 9 * share:.1f}"
            for index, share in enumerate(cell.trend)
        ]
        parts.append(tag("polyline", points=" ".join(points), class_="trend"))
    box = tag("rect", x=x, y=y, width=size, height=size, rx=6, fill=fill)
    return tag("g", tag("title", said), box, *parts)


def thinned(points: Points) -> list[tuple[float, float]]:
    """At most MOST_POINTS: means of neighbours, and always the last one."""
    if len(points) <= MOST_POINTS:
        return list(points)
    size = -(-len(points) // (MOST_POINTS - 1))
    kept = []
    for first in range(0, len(points), size):
        part = points[first : first + size]
        kept.append((part[-1][0], sum(y for _, y in part) / len(part)))
    kept[-1] = points[-1]
    return kept


def short(value: float) -> str:
    """12.3k, 4M: as few characters as say it."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{letter}"
    return f"{value:.3g}"


class _Frame:
    """From values to pixels, and the axes."""

    def __init__(self, x0: float, x1: float, y0: float, y1: float) -> None:
        self.x0, self.x1, self.y0 = x0, x1, y0
        self.y1 = y1 if y1 > y0 else y0 + 1.0

    def x(self, value: float) -> float:
        share = (value - self.x0) / ((self.x1 - self.x0) or 1.0)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        # For huge numbers, one more is none more.
        share = (value - self.y0) / ((self.y1 - self.y0) or 1.0)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def axes(self, *, percent: bool = False) -> list[Markup]:
        parts = []
        for value in _ticks(self.y0, self.y1):
            y = self.y(value)
            label = f"{value:.0%}" if percent else short(value)
            parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="rule"))
            parts.append(tag("text", label, x=LEFT - 6, y=y + 5, text_anchor="end"))
        for value in _ticks(self.x0, self.x1):
            x = self.x(value)
            parts.append(tag("text", short(value), x=x, y=HEIGHT - 24, text_anchor="middle"))
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(tag("text", "steps", x=middle, y=HEIGHT - 5, text_anchor="middle"))
        return parts


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers, about five of them."""
    span = high - low
    # For subnormal numbers, steps would be 0.
    if span <= 1e-300:
        return [low]
    raw = span / 5
    power = 10 ** floor(log10(raw))
    step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= raw), 10 * power)
    first = -(-low // step) * step
    return [first + index * step for index in range(int((high - first) / step + 1e-9) + 1)]


def _svg(parts: Sequence[Markup], label: str) -> Markup:
    return tag(
        "svg", join(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", class_="chart", role="img",
        aria_label=label,
    )  # fmt: skip
