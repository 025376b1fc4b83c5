"""`warpzone map`: a stage as one picture, and what happened on it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from warpzone import rom as roms
from warpzone.rom.waiting import loading

if TYPE_CHECKING:
    from warpzone import _engine
    from warpzone.maps.events import Event
    from warpzone.maps.flight import AreaPicture


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "map",
        help="a full-length picture of a stage, and where agents die on it",
        description="Stitches a stage's full-length picture from real frames, without sprites. "
        "With --run it shows where the episodes of a run ended: red deaths, yellow stalls, green "
        "flags; the blue line is the share of episodes that came past a place.",
    )
    parser.add_argument("stage", help="1-1 to 8-4, a set, or `all` (--out is a folder then)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="a .png (default: names of run and stage; several stages: the folder maps)",
    )
    parser.add_argument("--rooms", action="store_true", help="also what pipes and vines lead to")
    parser.add_argument(
        "--run", metavar="RUN", help="draw a run's episodes on it; a folder, a name, or `latest`"
    )
    parser.add_argument(
        "--source",
        choices=("evals", "episodes"),
        default="evals",
        help="a run's evaluations (default) or its training episodes",
    )
    parser.add_argument("--newest", action="store_true", help="only the newest evaluation")
    parser.add_argument("--policy", choices=("argmax", "sampled"), help="only this policy")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")
    parser.add_argument("--scale", type=int, default=1, help="pixel size (default 1)")
    parser.add_argument(
        "--rom",
        help="eu, world, lost-levels or a file (default: the installed one)",
    )


def run(args: argparse.Namespace) -> int:
    from warpzone.env.stages import parse_stages, stage_name
    from warpzone.rom import native

    if not 1 <= args.scale <= 8:
        raise ValueError(f"--scale must be in 1..8, and is {args.scale}")
    stages = [stage_name(index) for index in parse_stages(args.stage)]
    several = len(stages) > 1
    if not stages:
        raise ValueError("a map is of a stage, such as 1-1")
    if several and args.out is not None and not args.out.is_dir():
        raise ValueError(f"--out must be a folder for {len(stages)} stages, not {args.out}")
    if not several and args.out is not None and args.out.suffix.lower() != ".png":
        raise ValueError(f"{args.out.name}: a map is a .png")
    if args.run is not None:
        from warpzone.run.reader import named_run

        args.run = named_run(args.run, args.runs_dir)
        if not args.run.is_dir():
            raise ValueError(f"{args.run} is not a run's folder")
    image = roms.locate(args.rom).data
    program = native.load(image)
    folder = args.out if several and args.out is not None else Path("maps" if several else "")
    folder.mkdir(exist_ok=True)
    prefix = f"{args.run.resolve().name}-" if args.run is not None and args.out is None else ""
    for stage in stages:
        default = folder / f"{prefix}{stage}.png"
        path = default if several or args.out is None else args.out
        with loading(f"drawing {stage}"):
            said = _write(args, stage, path, image, program)
        print(said)
    return 0


def _write(
    args: argparse.Namespace,
    stage: str,
    path: Path,
    image: bytes,
    program: _engine.NativeProgram | None,
) -> str:
    """Draws a stage; returns what is to be said about it."""
    from warpzone.maps.cache import stage_areas
    from warpzone.maps.events import read_restarts
    from warpzone.maps.heat import draw_heat, stacked
    from warpzone.media.pictures import enlarge, save_png

    areas = stage_areas(stage, image, program)
    if args.run is None:
        shown = areas if args.rooms else areas[:1]
        pictures = [area.picture for area in shown]
    else:
        events = _events(args, stage)
        if not events:
            print(f"warpzone map: {args.run} has no episode of {stage}", file=sys.stderr)
        shown = _visited(areas, events) if not args.rooms else areas
        restarts = read_restarts(args.run, stage)
        pictures = [
            draw_heat(area, events, first=area is areas[0], restarts=restarts) for area in shown
        ]
    picture = enlarge(stacked(pictures), args.scale)
    save_png(picture, path, colors=None if args.run else 64)
    return f"{stage}: {picture.shape[1]} x {picture.shape[0]} pixels in {path}"


def _visited(areas: list[AreaPicture], events: list[Event]) -> list[AreaPicture]:
    ended = {event.area for event in events}
    return [area for area in areas if area is areas[0] or area.key in ended]


def _events(args: argparse.Namespace, stage: str) -> list[Event]:
    from warpzone.maps.events import latest, read_events
    from warpzone.run.names import EPISODES, EVALS

    source = {"evals": EVALS, "episodes": EPISODES}[args.source]
    events = read_events(args.run, stage, source)
    if args.policy:
        events = [event for event in events if event.policy == args.policy]
    return latest(events) if args.newest else events
