"""The report of a sweep: importance, parallel coordinates, the curves of all trials, and the
command of the best one. It is made of `sweep.json` alone, which may come from anywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.config import ConfigError
from warpzone.report.axes import Axis, bar_chart, parallel_chart
from warpzone.report.charts import Points, line_chart, short
from warpzone.report.html import Child, Markup, section, table, tag
from warpzone.run.names import SWEEP
from warpzone.run.opening import read_object

FORMAT = 1
#: Bytes of the file: some 500 for each trial.
MOST_BYTES = 64 << 20
#: Curves in one chart; more cannot be told apart.
MOST_CURVES = 60
#: Trials in the table.
MOST_ROWS = 500


@dataclass(frozen=True)
class TrialData:
    """One trial."""

    number: int
    state: str
    value: float | None
    params: dict[str, Any]
    curve: Points
    run: str
    reason: str
    steps: int


@dataclass(frozen=True)
class SweepData:
    """A sweep as a report needs it."""

    name: str
    objective: str
    small_is_good: bool
    axes: tuple[Axis, ...]
    trials: tuple[TrialData, ...]
    command: str
    importance: dict[str, float]
    facts: dict[str, str]

    @property
    def ranked(self) -> list[TrialData]:
        """Completed trials, the best first."""
        sign = 1 if self.small_is_good else -1
        done = [trial for trial in self.trials if trial.value is not None]
        return sorted(done, key=lambda trial: (sign * (trial.value or 0.0), trial.number))


def is_sweep(folder: Path) -> bool:
    """Whether a folder is that of a sweep."""
    return (folder / SWEEP).is_file()


def read_sweep(folder: Path) -> SweepData:
    """Reads the folder of a sweep; ConfigError if what it says cannot be used."""
    try:
        found = read_object(folder, SWEEP, MOST_BYTES)
        if found.get("format") != FORMAT:
            raise ValueError(f"its format is {found.get('format')!r}, not {FORMAT}")
        return SweepData(
            name=str(found["name"]),
            objective=str(found["objective"]),
            small_is_good=found["direction"] == "minimize",
            axes=tuple(_axis(row) for row in found["parameters"]),
            trials=tuple(_trial(row) for row in found["trials"]),
            command=str(found["command"]),
            importance={str(k): float(v) for k, v in found["importance"].items()},
            facts={key: str(found[key]) for key in ("sampler", "pruner", "max_steps")},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{folder / SWEEP} cannot be used: {error}") from error


def _axis(row: dict[str, Any]) -> Axis:
    choices = tuple(row["choices"])
    if choices:
        return Axis(str(row["name"]), choices=choices)
    return Axis(str(row["name"]), float(row["low"]), float(row["high"]), bool(row["log"]))


def _trial(row: dict[str, Any]) -> TrialData:
    value = row["value"]
    return TrialData(
        number=int(row["number"]),
        state=str(row["state"]),
        value=None if value is None else float(value),
        params=dict(row["params"]),
        curve=[(float(x), float(y)) for x, y in row["curve"]],
        run=str(row["run"]),
        reason=str(row["reason"]),
        steps=int(row["steps"] or 0),
    )


def sweep_sections(data: SweepData) -> list[Markup]:
    """All parts of the page."""
    return [
        section(f"{data.name} · {data.objective}", _overview(data)),
        _best(data),
        section("Curves of all trials", tag("div", *_curves(data), class_="charts")),
        section("What decides", _importance(data), _parallel(data)),
        section("Trials", _table(data)),
    ]


def _overview(data: SweepData) -> Markup:
    states = [trial.state for trial in data.trials]
    cards = [(state, str(states.count(state))) for state in dict.fromkeys(states)]
    cards.append(("steps of all trials", short(sum(float(trial.steps) for trial in data.trials))))
    if data.ranked:
        best = data.ranked[0]
        cards.append((f"best value, trial {best.number}", f"{best.value:g}"))
    cards += list(data.facts.items())
    boxes = [tag("div", tag("b", value), tag("span", name, class_="dim")) for name, value in cards]
    return tag("div", *boxes, class_="cards")


def _best(data: SweepData) -> Markup:
    if not data.command:
        return section("Best settings", tag("p", "no trial is complete yet", class_="empty"))
    hint = "Trains with the settings of the best trial; another --seed shows how much was luck."
    return section("Best settings", tag("p", hint), tag("pre", tag("code", data.command)))


def _curves(data: SweepData) -> list[Markup]:
    """The objective over steps, the best trials first; those that were pruned end early."""
    order = {trial.number: rank for rank, trial in enumerate(data.ranked)}
    trials = sorted(data.trials, key=lambda trial: order.get(trial.number, len(order)))
    shown = {f"trial {t.number}, {t.state}": t.curve for t in trials[:MOST_CURVES]}
    charts = [line_chart(data.objective[:1].upper() + data.objective[1:], shown)]
    if len(trials) > MOST_CURVES:
        charts.append(tag("p", f"The {MOST_CURVES} best of {len(trials)} trials.", class_="dim"))
    return charts


def _importance(data: SweepData) -> Markup:
    note = tag(
        "p",
        "How much a parameter decides whether a trial is among the good ones (PED-ANOVA, completed "
        "trials). Parameters with a condition are left out.",
    )
    return tag("div", note, bar_chart("Importance", data.importance))


def _parallel(data: SweepData) -> Markup:
    ranked = data.ranked
    values = [trial.value for trial in ranked if trial.value is not None]
    if not values:
        return parallel_chart("Parallel coordinates", (), ())
    axes = [*data.axes, Axis("value", min(values), max(values))]
    span = (max(values) - min(values)) or 1.0
    lines: list[tuple[str, Sequence[Any], float]] = []
    for trial in ranked:
        value = trial.value or 0.0
        good = (value - min(values)) / span
        good = 1.0 - good if data.small_is_good else good
        row = [trial.params.get(axis.name) for axis in data.axes]
        lines.append((f"trial {trial.number}: {value:g}", [*row, value], good))
    return parallel_chart("Parallel coordinates: completed trials, green is good", axes, lines)


def _table(data: SweepData) -> Markup:
    names = [axis.name for axis in data.axes]
    rest = [trial for trial in data.trials if trial.value is None]
    rows: list[list[Child]] = [
        [
            trial.number,
            trial.state,
            "" if trial.value is None else f"{trial.value:g}",
            short(trial.steps),
            *(_value(trial.params.get(name)) for name in names),
            trial.run,
            trial.reason,
        ]
        for trial in [*data.ranked, *rest][:MOST_ROWS]
    ]
    return table(["trial", "state", "value", "steps", *names, "run", "remark"], rows)


def _value(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.4g}"
    return "" if value is None else str(value)
