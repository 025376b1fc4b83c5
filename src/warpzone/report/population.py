"""The report of a population: who descends from whom, values and settings over steps, and the best
command. It is made of `population.json` alone, which may come from anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.config import ConfigError
from warpzone.report.charts import PALETTE, WIDTH, Points, line_chart, short
from warpzone.report.html import Child, Markup, section, table, tag
from warpzone.run.names import POPULATION
from warpzone.run.opening import read_object

FORMAT = 1
MOST_BYTES = 64 << 20
#: Runs that are drawn and listed.
MOST_RUNS = 500
#: Pixels of a member's row, and of the names before it.
ROW, SIDE = 26, 84


@dataclass(frozen=True)
class MemberRun:
    """One run: a member from one take-over to the next."""

    run: str
    member: int
    parent: str | None
    step: int
    settings: dict[str, Any]
    points: tuple[tuple[int, float | None, dict[str, Any]], ...]

    @property
    def end(self) -> int:
        return self.points[-1][0] if self.points else self.step


@dataclass(frozen=True)
class PopulationData:
    """A population as a report needs it."""

    name: str
    objective: str
    small_is_good: bool
    parameters: tuple[str, ...]
    runs: tuple[MemberRun, ...]
    best: dict[str, Any]
    command: str
    facts: dict[str, str]

    def ancestors(self, run: str) -> list[str]:
        """The runs that a run descends from, itself first."""
        parents = {one.run: one.parent for one in self.runs}
        line: list[str] = []
        here: str | None = run
        while here is not None and here in parents and here not in line:
            line.append(here)
            here = parents[here]
        return line


def is_population(folder: Path) -> bool:
    """Whether a folder is that of a population."""
    return (folder / POPULATION).is_file()


def read_population(folder: Path) -> PopulationData:
    """Reads the folder of a population; ConfigError if what it says cannot be used."""
    try:
        found = read_object(folder, POPULATION, MOST_BYTES)
        if found.get("format") != FORMAT:
            raise ValueError(f"its format is {found.get('format')!r}, not {FORMAT}")
        return PopulationData(
            name=str(found["name"]),
            objective=str(found["objective"]),
            small_is_good=found["direction"] == "minimize",
            parameters=tuple(map(str, found["parameters"])),
            runs=tuple(_run(row) for row in found["runs"][:MOST_RUNS]),
            best=dict(found["best"] or {}),
            command=str(found["command"]),
            facts={key: str(found[key]) for key in ("members", "exchange", "max_steps")},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{folder / POPULATION} cannot be used: {error}") from error


def _run(row: dict[str, Any]) -> MemberRun:
    parent = row["parent"]
    return MemberRun(
        run=str(row["run"]),
        member=int(row["member"]),
        parent=None if parent is None else str(parent),
        step=int(row["step"]),
        settings=dict(row["settings"]),
        points=tuple(
            (
                int(point["step"]),
                None if point["value"] is None else float(point["value"]),
                dict(point["settings"]),
            )
            for point in row["points"]
        ),
    )


def population_sections(data: PopulationData) -> list[Markup]:
    """All parts of the page."""
    return [
        section(f"{data.name} · {data.objective}", _overview(data)),
        _best(data),
        section("Lineage", _note(), lineage_chart(data)),
        section("Values and settings", tag("div", *_curves(data), class_="charts")),
        section("Runs", _table(data)),
    ]


def _overview(data: PopulationData) -> Markup:
    cards = list(data.facts.items())
    cards.append(("take-overs", str(sum(run.parent is not None for run in data.runs))))
    if data.best:
        cards.append((f"best value, {data.best.get('run')}", str(data.best.get("value"))))
    boxes = [tag("div", tag("b", value), tag("span", name, class_="dim")) for name, value in cards]
    return tag("div", *boxes, class_="cards")


def _best(data: PopulationData) -> Markup:
    if not data.command:
        return section("Best settings", tag("p", "no member was evaluated yet", class_="empty"))
    hint = (
        "The settings that the best member ended with. It may have had others before, which its "
        "lineage shows; its weights are in its run."
    )
    return section("Best settings", tag("p", hint), tag("pre", tag("code", data.command)))


def _note() -> Markup:
    return tag(
        "p",
        "A row for each member, from left to right in steps. Where a member took over another's "
        "weights, a line comes down or up from that one, and its row goes on in the colour of the "
        "ancestor it now descends from. The ancestors of the best run are drawn thick.",
    )


def lineage_chart(data: PopulationData) -> Markup:
    """Rows of members; colours are those of the first ancestors."""
    if not data.runs:
        return tag("p", "no member has begun yet", class_="empty")
    members = sorted({run.member for run in data.runs})
    rows = {member: index for index, member in enumerate(members)}
    top = max(run.end for run in data.runs) or 1
    chosen = data.ancestors(str(data.best.get("run", "")))
    by_name = {run.run: run for run in data.runs}

    def x(step: float) -> float:
        return SIDE + (WIDTH - SIDE - 14) * (step / top)

    def y(member: int) -> float:
        return 14 + ROW * rows[member]

    parts: list[Markup] = [
        tag("text", f"member {member}", x=4, y=y(member) + 4) for member in members
    ]
    for run in data.runs:
        first = by_name[data.ancestors(run.run)[-1]]
        colour = PALETTE[rows[first.member] % len(PALETTE)]
        wide = 5 if run.run in chosen else 2
        parent = by_name.get(run.parent or "")
        line: dict[str, str | int | float] = {"stroke": colour, "stroke_width": wide}
        if parent is not None:
            at = x(run.step)
            ends = {"x1": at, "x2": at, "y1": y(parent.member), "y2": y(run.member)}
            parts.append(tag("line", tag("title", _said(run)), **ends, **line))
        ends = {"x1": x(run.step), "x2": x(run.end), "y1": y(run.member), "y2": y(run.member)}
        parts.append(tag("line", tag("title", _said(run)), **ends, **line))
    height = 14 + ROW * len(members) + 16
    parts.append(tag("text", "0", x=SIDE, y=height - 4))
    parts.append(tag("text", f"{short(top)} steps", x=WIDTH - 14, y=height - 4, text_anchor="end"))
    return tag(
        "svg", *parts, viewBox=f"0 0 {WIDTH} {height}", class_="chart", role="img",
        aria_label="lineage",
    )  # fmt: skip


def _said(run: MemberRun) -> str:
    source = f" from {run.parent} at step {run.step:,}" if run.parent else ""
    settings = ", ".join(f"{name} {_short(value)}" for name, value in run.settings.items())
    return f"{run.run}{source}: {settings}"


def _curves(data: PopulationData) -> list[Markup]:
    """Each member's value and settings, over all its runs."""
    title = data.objective[:1].upper() + data.objective[1:]
    charts = [line_chart(title, _series(data, None))]
    charts += [line_chart(name, _series(data, name)) for name in data.parameters]
    return charts


def _series(data: PopulationData, name: str | None) -> dict[str, Points]:
    series: dict[str, list[tuple[float, float]]] = {}
    for run in data.runs:
        points = series.setdefault(f"member {run.member}", [])
        for step, value, settings in run.points:
            y = value if name is None else settings.get(name)
            if isinstance(y, int | float) and not isinstance(y, bool):
                points.append((float(step), float(y)))
    return dict(series)


def _table(data: PopulationData) -> Markup:
    rows: list[Sequence[Child]] = []
    for run in data.runs:
        values = [value for _, value, _ in run.points if value is not None]
        best = (min if data.small_is_good else max)(values, default=None)
        rows.append(
            [
                run.run,
                run.parent or "",
                f"{run.step:,}",
                f"{run.end:,}",
                "" if best is None else f"{best:g}",
                *(_short(run.settings.get(name)) for name in data.parameters),
            ]
        )
    return table(["run", "from", "first step", "last step", "best value", *data.parameters], rows)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
