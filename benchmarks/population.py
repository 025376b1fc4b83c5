"""Compares a population with random search and with independent runs, at equal steps.

python benchmarks/population.py --members 4 --out benchmarks/population.json
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from warpzone.bench.machine import describe
from warpzone.config import load_preset
from warpzone.run.names import EVALS
from warpzone.run.reader import read_rows
from warpzone.search.objective import Objective, points_of
from warpzone.search.population import PopulationOrder, train_population
from warpzone.search.space import read_space

SPACE = """
preset = "quick"
objective = "distance"
pruner = "none"
name = "{name}"
[fixed]
max_steps = {steps}
eval_interval = {every}
num_envs = 16
rollout_steps = 64
minibatch = 256
device = "cpu"
[space]
lr = {{ low = 1e-4, high = 3e-3, log = true }}
entropy = {{ low = 0.001, high = 0.05, log = true }}
reward_death = {{ low = -5.0, high = -0.5 }}
gae_lambda = {{ low = 0.8, high = 1.0 }}
"""


def say(text: str) -> None:
    print(f"[population] {text}", file=sys.stderr, flush=True)


def searched(name: str, exchange: int, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """A population, or without exchanges a random search that begins with the same settings."""
    file = folder / f"{name}.toml"
    file.write_text(SPACE.format(name=name, steps=args.max_steps, every=args.exchange))
    order = PopulationOrder(
        file, read_space(file), folder / name, args.members, args.workers, exchange, 0.25
    )
    began = time.monotonic()
    record = train_population(order, say)
    return summary([folder / name / run["run"] for run in record["runs"]], began) | {
        "exchanges": len(record["runs"]) - args.members,
        "lineage": [
            {key: run[key] for key in ("run", "parent", "step", "settings")}
            for run in record["runs"]
        ],
    }


def independent(args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Runs of the preset that differ in their seeds alone."""
    from warpzone.observers.make import make_observers
    from warpzone.search.trial import Silent
    from warpzone.train.loop import Result, Run
    from warpzone.train.session import train
    from warpzone.train.stopping import Stop

    began = time.monotonic()
    preset = load_preset("quick").replace(
        max_steps=args.max_steps,
        eval_interval=args.exchange,
        # Of a short run, many small updates teach more than few large ones.
        num_envs=16,
        rollout_steps=64,
        minibatch=256,
        stop_at=0.0,
        device="cpu",
    )

    def learn(run: Run) -> Result:
        with Silent(run.config, run.folder.path.name) as progress:
            return run.train(progress)

    for seed in range(1, args.members + 1):
        config = preset.replace(seed=seed, runs_dir=str(folder / "independent"), run_name=str(seed))
        result = train(config, make_observers, Stop(), learn)
        say(f"seed {seed}: {result.best_clears} clears")
    return summary([folder / "independent" / str(seed + 1) for seed in range(args.members)], began)


def summary(runs: list[Path], began: float) -> dict[str, Any]:
    """The best evaluations of all runs, and how they came to be."""
    found = {run.name: points_of(read_rows(run, EVALS)) for run in runs}
    distance, clears = Objective("distance", 0, 1), Objective("clears", 0, 1)
    return {
        "best_distance": max(distance.value(points) or 0.0 for points in found.values()),
        "best_clears": max(clears.value(points) or 0.0 for points in found.values()),
        "seconds": round(time.monotonic() - began),
        "curves": {
            name: [[step, round(distance.value([(step, rows)]) or 0.0, 1)] for step, rows in points]
            for name, points in found.items()
        },
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--max-steps", type=int, default=18_432)
    parser.add_argument("--exchange", type=int, default=6_144)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    settings = {key: value for key, value in vars(args).items() if key != "out"}
    arms: dict[str, dict[str, Any]] = {}
    report = {"settings": settings, "stage": "1-1", "machine": describe(), "arms": arms}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("population", "random search", "independent"):
            if name == "independent":
                arms[name] = independent(args, folder)
            else:
                exchange = args.exchange if name == "population" else 0
                arms[name] = searched(name.split()[0], exchange, args, folder)
            # After each of them: they take long.
            args.out.write_text(json.dumps(report, indent=1) + "\n")
    for name, arm in arms.items():
        print(f"{name}: {arm['best_distance']:.0f} px, {arm['best_clears']:.0f} of 31 clears")
    return 0


if __name__ == "__main__":
    sys.exit(main())
