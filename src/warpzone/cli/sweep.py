"""`warpzone sweep`: searches for settings with Optuna."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from warpzone.cli.counts import positive
from warpzone.cli.durations import minutes


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "sweep",
        help="search for settings: many runs, drawn and pruned by Optuna",
        description="Runs trials with settings drawn from a space (docs/sweeps.md). The same "
        "command again goes on with the sweep, as do other machines with the same --storage.",
    )
    parser.add_argument("space", type=Path, metavar="SPACE.toml", help="what is searched, and how")
    parser.add_argument(
        "--trials", type=positive, required=True, metavar="N", help="trials of the whole sweep"
    )
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="K", help="trials at once on this machine"
    )
    parser.add_argument(
        "--storage",
        metavar="URL",
        help="a journal file, postgresql://USER@HOST/DATABASE or sqlite:///FILE (default: "
        "WARPZONE_STORAGE, or journal.log in the sweep's folder)",
    )
    parser.add_argument(
        "--max-time",
        type=minutes,
        default=0.0,
        metavar="MINUTES",
        help="of the whole sweep; 90s, 5m and 2h say their own unit",
    )
    parser.add_argument(
        "--max-steps", type=int, default=0, metavar="N", help="of all trials together"
    )
    parser.add_argument(
        "--max-cost-gpu-hours", type=float, default=0.0, metavar="H", help="of all trials together"
    )
    parser.add_argument(
        "--heartbeat",
        type=positive,
        default=15,
        metavar="SECONDS",
        help="a worker that misses four of these is dead, and its trial is tried again",
    )
    parser.add_argument(
        "--runs-dir", type=Path, default=Path("runs"), help="the sweep is a folder in this one"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the sweep to its end."""
    for package, extra in (("torch", "train"), ("optuna", "sweep"), ("cmaes", "sweep")):
        if importlib.util.find_spec(package) is None:
            raise OSError(
                f"sweeps need {package}; install it with: pip install 'warpzone[{extra}]'"
            )
    from warpzone.search.address import find_address, leave_command_line
    from warpzone.search.budget import Caps
    from warpzone.search.space import read_space
    from warpzone.search.sweep import Order, SweepStopped, sweep

    for name in ("max_time", "max_steps", "max_cost_gpu_hours"):
        value = getattr(args, name)
        if not value >= 0 or value == float("inf"):
            raise ValueError(f"--{name.replace('_', '-')} must not be negative, and is {value}")
    given = find_address(args.storage, Path("journal.log"))
    leave_command_line(given)
    space = read_space(args.space)
    folder = args.runs_dir / space.name
    order = Order(
        file=args.space,
        space=space,
        folder=folder,
        storage=find_address(args.storage, folder / "journal.log"),
        trials=args.trials,
        workers=args.workers,
        caps=Caps(args.max_time, args.max_steps, args.max_cost_gpu_hours),
        heartbeat=args.heartbeat,
    )
    try:
        return sweep(order)
    except SweepStopped as stopped:
        return stopped.exit_code
