"""`warpzone population`: population based training with Ray Tune."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path

from warpzone.cli.counts import positive


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "population",
        help="population based training: members that exchange weights and change settings",
        description="Trains members side by side on Ray Tune; at every exchange the worst take "
        "over weights and settings of the best and change the settings a little (docs/sweeps.md).",
    )
    parser.add_argument("space", type=Path, metavar="SPACE.toml", help="what members differ in")
    parser.add_argument("--members", type=positive, required=True, metavar="N")
    parser.add_argument(
        "--workers", type=positive, metavar="K", help="members at once (default: one for each core)"
    )
    parser.add_argument(
        "--exchange",
        type=int,
        metavar="STEPS",
        help="steps between two exchanges (default: a tenth of max_steps; 0 is never)",
    )
    parser.add_argument(
        "--quantile",
        type=float,
        default=0.25,
        metavar="SHARE",
        help="share of members that take over another's weights (default 0.25)",
    )
    parser.add_argument(
        "--runs-dir", type=Path, default=Path("runs"), help="the population is a folder in this one"
    )


def run(args: argparse.Namespace) -> int:
    """Trains the population to its end."""
    for package, extra in (("torch", "train"), ("optuna", "sweep"), ("ray", "fleet")):
        if importlib.util.find_spec(package) is None:
            raise OSError(
                f"populations need {package}; install it with: pip install 'warpzone[{extra}]'"
            )
    from warpzone.search.population import PopulationOrder, train_population
    from warpzone.search.space import read_space

    space = read_space(args.space)
    exchange = args.exchange
    if exchange is None:
        exchange = max(1, space.base.max_steps // 10)
    if exchange < 0:
        raise ValueError(f"--exchange must not be negative, and is {exchange}")
    order = PopulationOrder(
        file=args.space,
        space=space,
        folder=args.runs_dir / space.name,
        members=args.members,
        workers=min(args.workers or os.cpu_count() or 1, args.members),
        exchange=exchange,
        quantile=args.quantile,
    )
    record = train_population(order, _say)
    best = record["best"]
    if best is None:
        print("warpzone population: no member was evaluated.", file=sys.stderr)
        return 1
    runs = len(record["runs"]) - args.members
    print(f"[population] {runs} times a member took over another's weights; folder {order.folder}")
    print(
        f"[population] best: {best['run']} at step {best['step']:,}, "
        f"{space.objective.describe()}: {best['value']:g}"
    )
    print(f"[population] its last settings: {record['command']}")
    return 0


def _say(text: str) -> None:
    print(f"[population] {text}", file=sys.stderr, flush=True)
