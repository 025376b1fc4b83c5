"""How fast two ranks of one machine train beside one process with all of its cores, in turns.

    python benchmarks/two_ranks.py --out benchmarks/two_ranks.json

Each is a run of `warpzone train`; what counts are its updates after the first few, by the clock, so
the machine must be idle. With as many cores as ranks the cores do the same work either way: what
two ranks lose is what they exchange, and what they wait for each other."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from warpzone.bench.machine import describe, load
from warpzone.config import TrainConfig, load_preset
from warpzone.run.names import METRICS
from warpzone.run.reader import read_rows

#: Updates before those that count.
WARM_UP = 3


def train(preset: TrainConfig, name: str, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """One run; its steps/s, and the share of time in exchanges."""
    steps = (WARM_UP + args.updates) * preset.steps_per_update
    words = ["train", "--preset", args.preset, "--device", "cpu", "--run-name", name]
    words += ["--runs-dir", str(folder), "--max-steps", str(steps), "--devices", name.split("-")[0]]
    for flag in ("eval-interval", "stop-at", "checkpoint-minutes", "wall-lanes"):
        words += [f"--{flag}", "0"]
    command = [sys.executable, "-m", "warpzone.cli.main", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    rows = list(read_rows(folder / name, METRICS))
    first, last = rows[WARM_UP - 1], rows[-1]
    passed = last["seconds"] - first["seconds"]
    shares = [row["communication_time_share"] or 0.0 for row in rows[WARM_UP:]]
    return {
        "rate": (last["global_step"] - first["global_step"]) / passed,
        "communication": statistics.mean(shares),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--out", type=Path, help="a file for the result")
    args = parser.parse_args()
    preset = load_preset(args.preset)
    found: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
    row = {
        **describe(),
        "preset": args.preset,
        "rounds": args.rounds,
        "updates": args.updates,
        "optimiser_steps": preset.steps_per_update // preset.minibatch * preset.epochs,
        "steps_per_update": preset.steps_per_update,
    }
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.rounds):
            # Each round in the reversed order of the last.
            for ranks in (1, 2)[:: 1 if number % 2 else -1]:
                found[ranks].append(train(preset, f"{ranks}-{number}", args, Path(folder)))
    ratios = [two["rate"] / one["rate"] for one, two in zip(found[1], found[2], strict=True)]
    row |= {
        "steps_per_second": {
            str(ranks): round(statistics.median(one["rate"] for one in runs), 1)
            for ranks, runs in found.items()
        },
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(ratio, 3) for ratio in ratios],
        "communication_time_share": round(
            statistics.median(one["communication"] for one in found[2]), 4
        ),
        "load_after": load(),
    }
    print(json.dumps(row, indent=1))
    if args.out:
        args.out.write_text(json.dumps(row, indent=1) + "\n")


if __name__ == "__main__":
    main()
