"""`warpzone video`: an agent at play, as a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpzone.cli import beginning
from warpzone.cli.acting import AGENT, NETWORK
from warpzone.rom.waiting import loading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warpzone import _engine
    from warpzone.eval.cases import Case
    from warpzone.eval.performance import Shot
    from warpzone.eval.weights import Found


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "video",
        help="a video of an agent at play: overlays, mosaic, slow motion",
        description="Plays an agent from a start delay and writes what happens, every frame at 60 "
        "frames a second. It is the episode that `warpzone eval` counts.",
    )
    parser.add_argument("agent", help=AGENT)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=".mp4 or .gif (default: the agent's name.mp4)"
    )
    parser.add_argument("--stage", help="1-1 (with --mosaic also a set; default: as trained)")
    parser.add_argument("--delay", type=int, default=0, help="start delay in frames (default 0)")
    beginning.add_flags(parser)
    parser.add_argument("--policy", choices=("argmax", "sampled"), default="argmax")
    parser.add_argument("--seed", type=int, default=0, help="of the sampled policy (default 0)")
    parser.add_argument("--scale", type=int, help="pixel size (default 3, in a mosaic 1)")
    parser.add_argument(
        "--overlay",
        default="all",
        help="all, none, or some of buttons,value,policy,view (default all)",
    )
    parser.add_argument("--mosaic", metavar="CxR", help="many lanes at once, such as 4x4")
    parser.add_argument(
        "--slow", type=int, default=3, help="times slower before a death; 1 is never (default 3)"
    )
    parser.add_argument(
        "--stuck-after", type=int, default=150, help="steps without new ground that end it (150)"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--network", metavar="MODULE:CLASS", help=NETWORK)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where runs are")
    parser.add_argument(
        "--rom", help="eu, world, lost-levels or a file (default: what it was trained on)"
    )


def run(args: argparse.Namespace) -> int:
    from warpzone.cli.acting import ready
    from warpzone.env.stages import LONGEST_DELAY
    from warpzone.eval.overlay import parse_parts
    from warpzone.media.video import write_video
    from warpzone.run.shipped import PREFIX

    if not 0 <= args.delay <= LONGEST_DELAY:
        raise ValueError(f"--delay must be in 0..{LONGEST_DELAY}, and is {args.delay}")
    if not 1 <= args.slow <= 10:
        raise ValueError(f"--slow must be in 1..10, and is {args.slow}")
    if args.scale is not None and not 1 <= args.scale <= 8:
        raise ValueError(f"--scale must be in 1..8, and is {args.scale}")
    if args.out is None:
        args.out = Path(f"{Path(args.agent).stem.removeprefix(PREFIX)}.mp4")
    if args.out.suffix.lower() not in (".mp4", ".gif"):
        raise ValueError(f"{args.out.name}: a video is .mp4 or .gif")
    if not args.out.parent.is_dir():
        raise FileNotFoundError(f"the folder {args.out.parent} does not exist")
    if args.stuck_after < 1:
        raise ValueError(f"--stuck-after must be at least 1, and is {args.stuck_after}")
    beginning.start(args)
    parts = parse_parts(args.overlay)
    _cases(args, args.stage)
    found, image, program = ready(args)
    with loading(f"playing, and writing {args.out}"):
        performance, pictures = _frames(args, found, image, program, parts)
        count = write_video(args.out, pictures, scale=1)
    beginning.say_door(args, ((shot.stage, shot.began) for shot in performance.last))
    for shot in performance.last[:16]:
        began = beginning.in_words(shot.began)
        print(f"{shot.stage}, start delay {shot.case.start_delay}{began}: {_end(shot)}")
    print(f"{count} frames written to {args.out}")
    return 0


def _frames(
    args: argparse.Namespace,
    found: Found,
    image: bytes,
    program: _engine.NativeProgram | None,
    parts: tuple[str, ...],
) -> tuple[Any, Iterator[Any]]:
    from warpzone.env.actions import action_table
    from warpzone.eval import video_frames
    from warpzone.eval.overlay import Panel
    from warpzone.eval.performance import Performance

    columns, cases = _cases(args, args.stage or found.config.stages)
    performance = Performance(
        found.agent,
        found.config,
        image,
        program,
        cases,
        seed=args.seed,
        stuck_after=args.stuck_after,
        **beginning.start(args),
    )
    if args.mosaic:
        return performance, video_frames.wall(
            performance.frames(), columns, args.scale or 1, slow=args.slow
        )
    panel = Panel(action_table(found.config.actions).names, parts, args.scale or 3)
    return performance, video_frames.single(performance.frames(), panel, slow=args.slow)


def _cases(args: argparse.Namespace, spec: str | None) -> tuple[int, list[Case]]:
    """The columns of the mosaic, and who plays; without stages only the words are checked."""
    from warpzone.env.stages import parse_stages
    from warpzone.eval import video_frames
    from warpzone.eval.cases import Case

    columns, rows = video_frames.parse_mosaic(args.mosaic) if args.mosaic else (1, 1)
    if spec is None:
        return columns, []
    stages = parse_stages(spec) or (0,)
    if args.mosaic:
        return columns, video_frames.mosaic_cases(stages, args.policy, args.delay, columns * rows)
    if len(stages) > 1 and args.stage:
        raise ValueError(f"--stage {args.stage} is not one stage; use --mosaic for a set")
    return columns, [Case(stages[0], args.policy, args.delay)]


def _end(shot: Shot) -> str:
    if shot.end == "flag":
        return "reaches the flag"
    return f"{'dies' if shot.end == 'death' else 'is stuck'} at x={shot.x}"
