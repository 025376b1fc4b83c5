"""The parts of a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import median
from typing import Any

from warpzone.eval.cases import BASELINES, POLICIES
from warpzone.eval.summary import wilson
from warpzone.report.charts import line_chart, short, stacked_chart
from warpzone.report.data import RunData, defaults
from warpzone.report.html import Markup, section, table, tag
from warpzone.report.published import RESULTS, SOURCES

#: Title, metric and unit of the curves, and whether they are shares.
CURVES = (
    ("Clear rate in training", "clear_rate", "last episodes (--episode-window)", True),
    ("Return", "avg_return", "last episodes (--episode-window)", False),
    ("Furthest x", "env_mean_x_pos", "pixels, mean of the last episodes", False),
    ("Episode length", "episode_length_mean", "steps", False),
    ("Entropy", "entropy", "", False),
    ("Value loss", "loss_value", "", False),
    ("Policy change", "approx_kl", "KL", False),
    ("Gradient norm", "grad_norm", "", False),
)


def overview(run: RunData) -> Markup:
    """The most important numbers."""
    cards = [("steps", short(float(run.last("global_step") or 0)))]
    seconds = run.last("seconds")
    if seconds:
        cards.append(("time", _clock(float(seconds))))
        cards.append(("steps/s overall", short(float(run.last("global_step") or 0) / seconds)))
    trained = {row.get("stage") for row in run.evals}
    for policy in ("argmax", "sampled"):
        rows = [row for row in run.best_rows() if row.get("policy") == policy]
        own = [row for row in rows if row.get("stage") in trained]
        cards += _rate(own, f"{policy} clears")
        if len(own) < len(rows):
            cards += _rate(rows, f"{policy} clears, all evaluated stages")
    first = next((point for point in run.points("argmax") if point.clears), None)
    if first is not None:
        name = f"to the first argmax clear, {short(first.global_step)} steps"
        cards.append((name, _clock(first.seconds)))
    boxes = [tag("div", tag("b", value), tag("span", name, class_="dim")) for name, value in cards]
    return tag("div", *boxes, class_="cards")


def _rate(rows: Sequence[dict[str, Any]], name: str) -> list[tuple[str, str]]:
    """A card with a clear rate and its interval; none without episodes."""
    if not rows:
        return []
    clears = sum(bool(row.get("cleared")) for row in rows)
    low, high = wilson(clears, len(rows))
    rate = f"{clears / len(rows):.0%}"
    return [(f"{name}: {clears} of {len(rows)}, 95 % {low:.0%} to {high:.0%}", rate)]


def curves(runs: Sequence[RunData]) -> Markup:
    """Learning curves, one colour for each run."""
    charts = [_evaluations(runs)]
    for title, name, unit, share in CURVES:
        series = {run.name: run.curve(name) for run in runs}
        if any(series.values()):
            charts.append(line_chart(title, series, unit=unit, top=1 if share else None))
    return section("Learning curves", tag("div", *charts, class_="charts"))


def _evaluations(runs: Sequence[RunData]) -> Markup:
    series, owners, dashed = {}, {}, []
    for index, run in enumerate(runs):
        for policy in ("argmax", "sampled"):
            name = f"{run.name}, {policy}" if len(runs) > 1 else policy
            series[name] = [(float(p.global_step), p.rate) for p in run.points(policy)]
            owners[name] = index
            dashed += [name] if policy == "sampled" else []
    title = "Evaluation: episodes that reach the flag"
    return line_chart(title, series, top=1, runs=owners, dashed=dashed)


def speed(runs: Sequence[RunData]) -> Markup:
    """Throughput, and seconds by owner."""
    series = {run.name: run.curve("env_steps_per_sec") for run in runs}
    charts = [line_chart("Throughput", series, unit="steps/s")]
    for run in runs:
        owners = sorted({key for row in run.metrics for key in row if key.startswith("time_")})
        shares = {}
        for owner in owners:
            shares[owner.removeprefix("time_")] = [
                (float(row["global_step"]), float(row.get(owner) or 0.0))
                for row in run.metrics
                if row.get("global_step") is not None
            ]
        shares = {name: points for name, points in shares.items() if any(y for _, y in points)}
        charts.append(stacked_chart(f"Time split of {run.name}", shares))
    return section("Throughput and time", tag("div", *charts, class_="charts"))


def baselines(runs: Sequence[RunData]) -> Markup:
    """The runs beside players that have learned nothing, where these were evaluated."""
    policies = (*POLICIES, *BASELINES)
    rows = []
    for run in runs:
        by_stage: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for row in (*run.evaluation, *run.baselines):
            episodes = by_stage.setdefault(str(row.get("stage")), {})
            episodes.setdefault(str(row.get("policy")), []).append(row)
        for stage, found in sorted(by_stage.items()):
            if any(name in found for name in BASELINES):
                reached = [_reached(found.get(name, [])) for name in policies]
                rows.append([run.name, stage, *reached])
    if not rows:
        return Markup("")
    return section(
        "Beside baselines",
        tag(
            "p",
            "Clear rate and median of the furthest x. The random player takes any action with the "
            "same chance, the scripted one runs to the right and jumps all the time; both play by "
            "the same protocol with the same actions.",
        ),
        table(["run", "stage", *policies], rows),
    )


def _reached(rows: Sequence[dict[str, Any]]) -> str:
    if not rows:
        return "-"
    clears = sum(bool(row.get("cleared")) for row in rows)
    places = [row["furthest_x"] for row in rows if "furthest_x" in row]
    return f"{clears / len(rows):.0%}" + (f", x {median(places):.0f}" if places else "")


def published(runs: Sequence[RunData]) -> Markup:
    """Results of the runs beside published results."""
    stages = sorted(
        {str(row.get("stage")) for run in runs for row in run.best_rows()} & set(RESULTS)
    )
    head = ["stage", *(f"{run.name} (argmax / sampled)" for run in runs)]
    head += [f"{run.name}: first clear" for run in runs]
    head += [source.name for source in SOURCES]
    rows = [_published_row(stage, runs) for stage in stages or ["1-1"]]
    meanings = [
        tag("li", tag("a", source.name, href=source.url), f": {source.meaning}.")
        for source in SOURCES
    ]
    rest = [[stage, *RESULTS[stage]] for stage in RESULTS if stage not in stages]
    others = tag(
        "details",
        tag("summary", "Published results of the other stages"),
        table(["stage", *(source.name for source in SOURCES)], rest),
    )
    return section(
        "Beside published results",
        tag(
            "p",
            "Ours are clear rates over start delays, one life, no help. A first clear is one "
            "episode from one start: cheaper to reach, and no measure of how reliable an agent is. "
            "Hardware differs, so hours compare only roughly. Numbers of others are as published; "
            "nothing was run again.",
        ),
        table(head, rows),
        tag("ul", *meanings),
        others if rest else "",
    )


def _published_row(stage: str, runs: Sequence[RunData]) -> list[str]:
    ours, firsts = [], []
    for run in runs:
        texts = []
        for policy in ("argmax", "sampled"):
            rows = [
                row
                for row in run.best_rows()
                if row.get("stage") == stage and row.get("policy") == policy
            ]
            clears = sum(bool(row.get("cleared")) for row in rows)
            texts.append(f"{clears / len(rows):.0%}" if rows else "-")
        ours.append(" / ".join(texts))
        point = next((p for p in run.points("argmax", stage) if p.clears), None)
        firsts.append(
            f"{short(point.global_step)} steps / {_clock(point.seconds)}" if point else "-"
        )
    return [stage, *ours, *firsts, *(cell or "-" for cell in RESULTS[stage])]


def configuration(runs: Sequence[RunData]) -> Markup:
    """What differs between runs, what was changed, and all of it."""
    usual = defaults()
    names = sorted({name for run in runs for name in run.config})
    parts: list[Markup] = []
    if len(runs) > 1:
        differing = [n for n in names if len({_value(run.config.get(n)) for run in runs}) > 1]
        parts.append(tag("h3", "What differs"))
        parts.append(_config_table(runs, differing))
    changed = [
        name
        for name in names
        if any(run.config.get(name) != usual.get(name) for run in runs if name in run.config)
    ]
    parts.append(tag("h3", "Changed from the defaults"))
    parts.append(_config_table(runs, changed))
    whole = tag("details", tag("summary", "All fields"), _config_table(runs, names))
    versions = [
        tag(
            "p",
            f"{run.name}: ",
            ", ".join(f"{k} {v}" for k, v in run.versions.items() if _plain(v)),
        )
        for run in runs
        if run.versions
    ]
    return section("Configuration", *parts, whole, *versions)


def _config_table(runs: Sequence[RunData], names: Sequence[str]) -> Markup:
    if not names:
        return tag("p", "nothing", class_="empty")
    rows = [[name, *(_value(run.config.get(name)) for run in runs)] for name in names]
    return table(["field", *(run.name for run in runs)], rows)


def _value(value: Any) -> str:
    return "" if value is None else json.dumps(value) if not isinstance(value, str) else value


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _clock(seconds: float) -> str:
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole // 60 % 60:02d} h"
