"""`warpzone bench train` and `warpzone bench overlap`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

FLAGS = "All flags of `warpzone train` and --preset NAME are understood too."


def run(kind: str, words: Sequence[str]) -> int:
    """Exit code; a configuration that cannot work is one sentence and 2."""
    from warpzone.config import ConfigError

    try:
        return _train(words) if kind == "train" else _overlap(words)
    except ConfigError as error:
        print(f"warpzone bench {kind}: {error}.", file=sys.stderr)
        return 2


def _train(words: Sequence[str]) -> int:
    parser = _parser(
        "train",
        "Measures engine, inference and learner alone and training end to end, serial and with "
        "overlap, in turns; prints the medians as JSON.",
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="of each slice (default 1)")
    parser.add_argument("--rounds", type=int, default=5, help="default 5")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the result there")
    parser.add_argument("--append", type=Path, metavar="FILE", help="the ledger to add a line to")
    args, rest = parser.parse_known_args(words)
    from warpzone.bench import ledger, machine
    from warpzone.bench.train import Plan, measure
    from warpzone.cli.flags import resolve
    from warpzone.config import ConfigError
    from warpzone.train.device import choose_device
    from warpzone.train.estimate import refuse_impossible

    try:
        plan = Plan(args.seconds, args.rounds)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    config = resolve(rest, prog=parser.prog, about=FLAGS)
    refuse_impossible(config.replace(overlap_collect=True), choose_device(config))
    about = {"command": _command(parser.prog, plan, rest), "machine": machine.describe()}
    result = {"bench": "train", **about, **measure(config, plan, _tell)}
    print(json.dumps(result, indent=1))
    if args.json is not None:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    _tell(f"added to {ledger.add(result, args.append)}")
    return 0


def _overlap(words: Sequence[str]) -> int:
    parser = _parser(
        "overlap",
        "Short training runs with and without --overlap-collect over a grid; writes "
        "bench_overlap_<timestamp>.csv.",
    )
    lists = {"--num-envs-list": (64, 128), "--rollout-list": (32, 64)}
    for name, default in lists.items():
        text = ",".join(map(str, default))
        parser.add_argument(name, type=_numbers, default=default, help=f"default {text}")
    parser.add_argument(
        "--warmup-frac",
        type=float,
        default=0.3,
        help="part of each run that is left out of the averages (default 0.3)",
    )
    parser.add_argument("--updates", type=int, default=20, help="of each run (default 20)")
    parser.add_argument("--out-dir", type=Path, default=Path(), help="of the CSV (default .)")
    parser.add_argument("--dry-run", action="store_true", help="say what would run, and stop")
    args, rest = parser.parse_known_args(words)
    from warpzone.bench.overlap import describe, grid, run_grid
    from warpzone.cli.flags import resolve
    from warpzone.config import ConfigError
    from warpzone.train.device import choose_device
    from warpzone.train.estimate import refuse_impossible

    if not 0.0 <= args.warmup_frac < 1.0:
        raise ConfigError(f"--warmup-frac is a fraction below 1, not {args.warmup_frac}")
    base = resolve(rest, prog=parser.prog, about=FLAGS)
    cases = grid(base, args.num_envs_list, args.rollout_list, args.updates)
    for mode, config in cases:
        refuse_impossible(config, choose_device(config))
        if args.dry_run:
            _tell_benchmark(describe(mode, config))
    if args.dry_run:
        return 0
    path = run_grid(cases, args.warmup_frac, args.out_dir, _tell_benchmark)
    _tell_benchmark(f"written to {path}")
    return 0


def _parser(kind: str, description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        prog=f"warpzone bench {kind}", description=description, epilog=FLAGS, allow_abbrev=False
    )


def _command(prog: str, plan: object, rest: Sequence[str]) -> str:
    """What shaped the numbers; folders stay out of the ledger."""
    shaped = " ".join(f"--{name} {value:g}" for name, value in vars(plan).items())
    return " ".join([prog, shaped, *(word.rpartition("/")[2] for word in rest)])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _tell_benchmark(text: str) -> None:
    print(f"[benchmark] {text}", flush=True)
