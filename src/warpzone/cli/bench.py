"""`warpzone bench`: measures speed, as tables and JSON."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

TRAINING = {
    "train": "steps/s of engine, inference and learner alone and of training, as JSON",
    "overlap": "training with and without --overlap-collect over a grid, as CSV",
}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "bench",
        help="measure speed, as JSON",
        description="Measures all cases round-robin in one run; medians and ratios of rounds.",
    )
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="WHAT")
    engine = kinds.add_parser("engine", help="frames/s, steps/s, and nes-py when installed")
    engine.add_argument("--seconds", type=float, default=1.0, help="of each slice (default 1)")
    engine.add_argument("--rounds", type=int, default=7, help="at least 5 (default 7)")
    engine.add_argument("--lanes", type=_numbers, default=(1, 16, 256), help="default 1,16,256")
    engine.add_argument("--threads", type=_numbers, default=(1, 2), help="default 1,2")
    engine.add_argument("--quick", action="store_true", help="5 short rounds, 16 lanes, 1 thread")
    engine.add_argument("--translate", action="store_true", help="measure the translation anew")
    engine.add_argument(
        "--rom", help="eu, world, lost-levels or a file (default: the installed one)"
    )
    engine.add_argument("--json", metavar="FILE", help="write the result; - is standard output")
    engine.add_argument("--append", type=Path, metavar="FILE", help="the ledger to add a line to")
    for name, summary in TRAINING.items():
        # Their flags are mixed with those of training, which tyro parses.
        other = kinds.add_parser(name, help=summary, add_help=False, prefix_chars="\0")
        other.add_argument("words", nargs=argparse.REMAINDER)


def run(args: argparse.Namespace) -> int:
    if args.kind in TRAINING:
        from warpzone.cli import bench_training

        return bench_training.run(args.kind, args.words)
    return _run_engine(args)


def _run_engine(args: argparse.Namespace) -> int:
    from warpzone import rom as roms
    from warpzone.bench import ledger, machine
    from warpzone.bench.engine import Plan, measure
    from warpzone.bench.report import render

    plan = Plan(args.seconds, args.rounds, args.lanes, args.threads, args.translate)
    if args.quick:
        plan = Plan(min(args.seconds, 0.1), 5, (16,), (1,), args.translate)
    image = roms.locate(args.rom)
    about = {"command": _command(args), "machine": machine.describe()}
    result: dict[str, Any] = {**about, **measure(image.data, image.variant, plan, _tell)}
    result["load_after"] = machine.load()
    if args.json == "-":
        print(json.dumps(result, indent=1))
    elif args.json is not None:
        Path(args.json).write_text(json.dumps(result, indent=1) + "\n")
    if args.json != "-":
        render(result)
    _tell(f"added to {ledger.add(_without_rates(result), args.append)}")
    return 0


def _command(args: argparse.Namespace) -> str:
    """The options that shaped the numbers; paths stay out of the ledger."""
    if args.quick:
        return "warpzone bench engine --quick"
    lists = " ".join(
        f"--{name} {','.join(map(str, getattr(args, name)))}" for name in ("lanes", "threads")
    )
    return f"warpzone bench engine --seconds {args.seconds:g} --rounds {args.rounds} {lists}"


def _without_rates(result: dict[str, Any]) -> dict[str, Any]:
    each_round = ("rates", "cpu_rates")
    cases = [{k: v for k, v in case.items() if k not in each_round} for case in result["cases"]]
    return {**result, "cases": cases}


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
