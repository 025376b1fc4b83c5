"""`warpzone play`: an agent, scripted, random, by keyboard or from a movie; watched or written to a
file."""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpzone import rom as roms
from warpzone.cli import beginning
from warpzone.cli.acting import AGENT, NETWORK
from warpzone.cli.counts import positive

if TYPE_CHECKING:
    from warpzone.play.player import Controller, Image, Session

#: Default number of steps of random play.
RANDOM_STEPS = 500
FRAMES_PER_STEP = 4


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "play",
        help="play a stage or a movie: an agent, scripted, random or by keyboard",
        description="Plays and shows a game. Without a source, the demo script runs 1-1. An agent "
        "is shown in a window where there is one, else in the terminal, or written with --out.",
    )
    parser.add_argument("agent", nargs="?", help=AGENT)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--script", metavar="NAME|FILE", help="a button script; `demo` clears 1-1")
    source.add_argument("--random", action="store_true", help="right-biased random buttons")
    source.add_argument("--keyboard", action="store_true", help="play yourself")
    source.add_argument("--movie", type=Path, metavar="FILE", help="FM2 or one mask per line")
    parser.add_argument("--stage", help="1-1 to 8-4 (default 1-1); with --lanes also a set")
    parser.add_argument("--delay", type=int, default=0, help="start delay of an agent, in frames")
    beginning.add_flags(parser)
    parser.add_argument("--policy", choices=("argmax", "sampled"), default="argmax")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--network", metavar="MODULE:CLASS", help=NETWORK)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")
    parser.add_argument("--steps", type=positive, help="stop after this many steps of 4 frames")
    parser.add_argument("--seed", type=int, default=0, help="of random play (default 0)")
    parser.add_argument("--lanes", type=positive, default=1, help="games side by side (random)")
    parser.add_argument("--out", type=Path, metavar="FILE", help=".mp4, .gif; .png: last frame")
    parser.add_argument("--scale", type=positive, help="pixel size in the video")
    parser.add_argument("--terminal", action="store_true", help="watch in this terminal")
    parser.add_argument("--window", action="store_true", help="watch in a window (pygame)")
    parser.add_argument(
        "--rom", help="eu, world, lost-levels or a file (default: the installed one)"
    )
    parser.add_argument("--json", action="store_true", help="print where it ended as JSON")


def run(args: argparse.Namespace) -> int:
    if args.out is not None and args.out.suffix.lower() not in (".mp4", ".gif", ".png"):
        raise ValueError(f"{args.out.name}: a video is .mp4 or .gif, a picture .png")
    if args.agent is not None:
        return _run_agent(args)
    args.stage = args.stage or "1-1"
    start = beginning.start(args)
    image = roms.locate(args.rom)
    if args.movie is not None:
        if args.start_power != "small" or args.start_halfway:
            raise ValueError("a movie begins with power-on; leave out --start-power and -halfway")
        return _run_movie(args, image)
    if args.lanes > 1 and not args.random:
        raise ValueError("--lanes needs --random: the other sources play one game")
    from warpzone.play import player

    with ExitStack() as stack:
        stages = _stages(args)
        session = player.Session(
            stages=stages, lanes=args.lanes, seed=args.seed, rom=image.data, **start
        )
        stack.callback(session.env.close)
        window = _window(args, stack)
        controller = _controller(args, image.variant, window, stack)
        frames = session.frames(controller, _limit(args))
        written = _consume(_watched(frames, args, window), args)
    names = [stages] if args.lanes == 1 else [name for (name,) in stages]
    beginning.say_door(args, zip(names, session.began, strict=True))
    _report(args, session, written)
    return 0


def _stages(args: argparse.Namespace) -> Any:
    """One lane plays one stage; many lanes spread over the set."""
    from warpzone.env.stages import parse_stages, stage_name

    indices = parse_stages(args.stage)
    if args.lanes == 1:
        if len(indices) != 1:
            raise ValueError(f"--stage {args.stage} is not one stage; use --lanes for a set")
        return stage_name(indices[0])
    if not indices:
        raise ValueError("--stage game plays one game; with --lanes give a set of stages")
    return [[stage_name(indices[lane % len(indices)])] for lane in range(args.lanes)]


def _controller(
    args: argparse.Namespace, variant: str, window: Any, stack: ExitStack
) -> "Controller":
    from warpzone.play import player

    if args.random:
        return player.random_player(args.lanes, args.seed)
    if args.keyboard:
        from warpzone.play import keyboard

        if window is not None:
            return player.keyed(window)
        print(keyboard.HELP)
        return player.keyed(stack.enter_context(keyboard.TerminalKeys()))
    from warpzone.env.script import load_script

    name = args.script or "demo"
    return player.scripted(load_script(f"demo-{variant}" if name == "demo" else name))


def _window(args: argparse.Namespace, stack: ExitStack) -> Any:
    if not args.window:
        return None
    from warpzone.env.actions import BUTTONS
    from warpzone.media.window import Window

    window = Window("warpzone", masks=BUTTONS)
    stack.callback(window.close)
    return window


def _limit(args: argparse.Namespace) -> int | None:
    steps = args.steps or (RANDOM_STEPS if args.random else None)
    return None if steps is None else int(steps) * FRAMES_PER_STEP


def _consume(frames: "Iterator[Image]", args: argparse.Namespace) -> int:
    """Plays to the end; returns the number of frames that were written."""
    if args.out is None:
        return sum(0 for _ in frames)
    if args.out.suffix.lower() == ".png":
        from warpzone.media.pictures import enlarge, save_png, shrink

        last = None
        for frame in frames:
            last = frame
        if last is None:
            raise ValueError("nothing was played, so there is no picture")
        picture = shrink(last, 2) if args.lanes > 1 else enlarge(last, args.scale or 2)
        save_png(picture, args.out, colors=128)
        return 1
    from warpzone.media.video import write_video

    return write_video(args.out, frames, scale=args.scale or (3 if args.lanes == 1 else 1))


def _report(args: argparse.Namespace, session: "Session", written: int) -> None:
    outcome = session.outcome
    if args.json:
        about = {"began": session.began[0], "written": written, "out": _name(args.out)}
        print(json.dumps({**outcome.as_dict(), **about}))
        return
    began = beginning.in_words(session.began[0]) if args.lanes == 1 else ""
    flags = f", {outcome.flags} flag{'s' * (outcome.flags != 1)}" if args.lanes == 1 else ""
    print(
        f"{outcome.frames} frames{began}, furthest {outcome.furthest_stage} "
        f"x={outcome.furthest_x}{flags}; "
        f"ended at {outcome.stage} x={outcome.x_pos}, score {outcome.score}"
    )
    if args.out is not None:
        print(f"{written} frame{'s' * (written != 1)} written to {args.out}")


def _run_agent(args: argparse.Namespace) -> int:
    """One episode of a trained agent."""
    from warpzone.cli import acting

    if args.script or args.random or args.keyboard or args.movie or args.lanes > 1:
        raise ValueError("an agent plays one game by itself: give no other source and no --lanes")
    if args.out is None and not args.terminal and not args.window:
        args.window = acting.has_window()
        args.terminal = not args.window and sys.stdout.isatty()
    performance, pictures = acting.performance(args)
    args.scale = args.scale or 1 if args.out is not None else args.scale
    with ExitStack() as stack:
        written = _consume(_watched(pictures, args, _window(args, stack)), args)
    (shot,) = performance.last
    beginning.say_door(args, [(shot.stage, shot.began)])
    if args.json:
        ended = {"stage": shot.stage, "x": shot.x, "furthest_x": shot.furthest_x, "end": shot.end}
        ended["began"] = shot.began
        print(json.dumps({**ended, "written": written, "out": _name(args.out)}))
        return 0
    began = beginning.in_words(shot.began)
    end = f"{shot.end or 'stopped'} at x={shot.x}"
    print(f"{shot.stage} from start delay {args.delay}{began}: {end}")
    if args.out is not None:
        print(f"{written} frame{'s' * (written != 1)} written to {args.out}")
    return 0


def _run_movie(args: argparse.Namespace, image: roms.Rom) -> int:
    """Plays from power-on and says where it ended; watching it is a second, drawn run."""
    from warpzone.play.movie import play_movie, read_movie
    from warpzone.rom import native

    movie = read_movie(args.movie)
    program = native.load(image.data)
    result = play_movie(image.data, movie, native=program)
    if args.out is not None or args.terminal or args.window:
        from warpzone.play.player import movie_frames

        with ExitStack() as stack:
            frames = movie_frames(image.data, movie, program)
            _consume(_watched(frames, args, _window(args, stack)), args)
    if args.json:
        print(json.dumps({**asdict(result), "victory": result.victory}))
        return 0
    stages = " ".join(f"{c.world}-{c.stage}@{c.frame}" for c in result.stage_changes)
    print(f"{result.frames} frames ({result.lag_frames} lag), {result.deaths} deaths")
    print(f"stages: {stages or 'none'}")
    print(f"ended at {result.world}-{result.stage} x={result.x}, {result.lives} lives")
    if result.victory:
        print(f"the game was won at frame {result.victory_frame}")
    if result.rom_matches is False:
        print("note: the movie was made with another ROM than this one")
    return 0


def _watched(frames: "Iterator[Image]", args: argparse.Namespace, window: Any) -> "Iterator[Image]":
    """The same frames, shown on their way where the options say so."""
    from warpzone.play import player

    if args.terminal or (args.keyboard and window is None):
        frames = player.in_terminal(frames)
    return frames if window is None else player.in_window(frames, window)


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path)
