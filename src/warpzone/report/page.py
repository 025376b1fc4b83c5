"""The page: all parts in one file that needs nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import warpzone
from warpzone import _engine
from warpzone.maps.events import Event, events_of, read_restarts, stages_in
from warpzone.report import embedded, sections
from warpzone.report.board import board
from warpzone.report.data import RunData
from warpzone.report.html import Markup, section, tag
from warpzone.report.style import CSS
from warpzone.run.reader import RunReader

#: Heat maps of one run.
MOST_MAPS = 8
#: Nothing from outside is loaded, whatever a run's files say.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:"


def make_page(
    runs: Sequence[RunData],
    page: Path,
    *,
    rom: bytes | None,
    native: _engine.NativeProgram | None = None,
    embed: int = 8_000_000,
) -> str:
    """The report as HTML. Without a ROM there are no maps. `embed`: bytes of videos inside."""
    title = f"warpzone: {', '.join(run.name for run in runs)}"
    parts = _heading(title)
    parts += [
        section(f"{run.name} · {run.config.get('stages', '')}", sections.overview(run))
        for run in runs
    ]
    parts.append(sections.curves(runs))
    parts.append(section("Stages", tag("div", *map(board, runs), class_="charts")))
    parts += [_maps(run, rom, native) for run in runs]
    parts.append(_videos(runs, page, embed))
    parts.append(sections.speed(runs))
    parts.append(sections.baselines(runs))
    parts.append(sections.published(runs))
    parts.append(sections.configuration(runs))
    return whole_page(title, parts)


def make_search_page(name: str, sections_of: Sequence[Markup]) -> str:
    """The report of a sweep or a population as HTML."""
    title = f"warpzone: {name}"
    return whole_page(title, [*_heading(title), *sections_of])


def whole_page(title: str, parts: Sequence[Markup]) -> str:
    """Everything around the parts."""
    foot = tag("footer", tag("p", f"Made by warpzone {warpzone.__version__}."))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", title),
        tag("style", Markup(CSS)),
    )
    return "<!doctype html>\n" + tag("html", head, tag("body", *parts, foot), lang="en") + "\n"


def _heading(title: str) -> list[Markup]:
    now = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    return [tag("h1", title), tag("p", now, class_="dim")]


def _maps(run: RunData, rom: bytes | None, native: _engine.NativeProgram | None) -> Markup:
    """Where the episodes of the best evaluation and of training ended."""
    title = f"Where {run.name} dies, stalls and passes"
    evaluated = run.best_rows()
    trained = run.episodes
    stages = stages_in([*evaluated, *trained])
    if rom is None or not stages:
        why = "there is no ROM to draw maps with" if rom is None else "no episode has ended yet"
        return section(title, tag("p", why, class_="empty"))
    chosen = _chosen(evaluated or trained, stages, stages_in(trained))
    parts: list[Markup] = [
        tag(
            "p",
            "Red: deaths. Yellow: stalls. Green: flags. The blue line is the share of episodes "
            "that came past a place. Rows below a map of training are its time, the oldest on top. "
            "Diamonds on it are the archive at the end: where episodes may begin, from pink (no "
            "attempt gained ground) to light blue (all did), the largest where half did.",
        )
    ]
    for stage in chosen:
        parts.append(tag("h3", stage))
        for rows, label in ((evaluated, "evaluation"), (trained, "training")):
            events: list[Event] = events_of(rows, stage)
            if events:
                text = f"{stage}, {label}: {len(events)} episodes"
                parts.append(tag("p", text, class_="dim"))
                restarts = read_restarts(run.path, stage) if rows is trained else []
                parts.append(embedded.heat_picture(stage, events, rom, native, text, restarts))
    if len(stages) > len(chosen):
        parts.append(
            tag("p", f"{len(stages) - len(chosen)} more stages: `warpzone map STAGE --run RUN`")
        )
    return section(title, *parts)


def _chosen(
    rows: Sequence[dict[str, object]], stages: Sequence[str], trained: Sequence[str]
) -> list[str]:
    """The stages that were trained on, then those with most failures, in the game's order."""
    failures = {
        stage: sum(event.kind != "flag" for event in events_of(rows, stage)) for stage in stages
    }
    ordered = sorted(stages, key=lambda stage: (stage not in trained, -failures[stage]))
    worst = ordered[:MOST_MAPS]
    return [stage for stage in stages if stage in worst]


def _videos(runs: Sequence[RunData], page: Path, embed: int) -> Markup:
    parts, left = [], embed
    for run in runs:
        shown = []
        for file in RunReader(run.path).videos():
            element, used = embedded.video(run.path, file, page, left)
            left -= used
            shown.append(element)
        if shown:
            parts.append(tag("h3", run.name))
            parts.append(tag("div", *shown, class_="videos"))
    if not parts:
        hint = "No videos yet: `warpzone video RUN --out RUN/videos/NAME.mp4` makes one."
        parts.append(tag("p", hint, class_="empty"))
    return section("Videos", *parts)
