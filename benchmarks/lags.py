"""What old weights cost in learning: the same run with a policy that plays so many updates behind.
`python benchmarks/lags.py --steps 400000 --out benchmarks/lags.jsonl`

In one process, so that the lag is exact: actors are at most that late, and how late depends on the
machine. The runs take turns; all have the same seed."""

from __future__ import annotations

import argparse
import copy
import json
import os
import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import torch

from warpzone.collect.collector import Collected, Collector
from warpzone.config import load_preset
from warpzone.eval.evaluate import clears
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.observers.progress import Unseen
from warpzone.train.drivers import Serial
from warpzone.train.loop import Run, collect_here

#: Of the metrics: what a table shows.
SHOWN = ("avg_return", "env_mean_x_pos", "clear_rate", "entropy", "approx_kl", "clip_fraction")
#: Updates of a turn.
TURN = 8


class Newest(Observer):
    """The metrics of the last updates."""

    def __init__(self) -> None:
        self.rows: deque[dict[str, Any]] = deque(maxlen=16)

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        self.rows.append(row)

    def mean(self, name: str) -> float | None:
        """Over the last updates that have it."""
        found = [float(row[name]) for row in self.rows if row.get(name) is not None]
        return round(sum(found) / len(found), 4) if found else None


class Late(Serial):
    """Plays with the weights that there were so many updates ago."""

    def __init__(self, run: Run, lag: int) -> None:
        super().__init__(run)
        self._weights: deque[list[torch.Tensor]] = deque(maxlen=lag + 1)

    @torch.no_grad()
    def hand_over(self) -> int:
        version = super().hand_over()
        playing = list(self._run.policies.acting.parameters())
        self._weights.append([part.clone() for part in playing])
        for place, part in zip(playing, self._weights[0], strict=True):
            place.copy_(part)
        return version - (len(self._weights) - 1)


def of_its_own(run: Run) -> Collector:
    """The collector of a run in which another agent plays than the one that learns."""
    run.policies.acting = copy.deepcopy(run.policies.agent)
    return collect_here(run)


class Measured:
    """One run of the table."""

    def __init__(self, algo: str, lag: int, args: argparse.Namespace, folder: str) -> None:
        config = load_preset(args.preset).replace(
            algo=algo,
            seed=args.seed,
            device="cpu",
            num_threads=1,
            eval_interval=0,
            checkpoint_minutes=0.0,
            monitor_interval=0.0,
            heartbeat_interval=0.0,
            wall_lanes=0,
            stop_at=0.0,
            runs_dir=folder,
            run_name=f"{algo}-{lag}",
        )
        self.algo, self.lag = algo, lag
        self.newest = Newest()
        self.run = Run(config, [self.newest], collecting=of_its_own)
        self.run.driver = Late(self.run, lag)

    def go_on(self, updates: int) -> None:
        """Some more updates."""
        run = self.run
        ends = run.global_update + updates
        run.done = lambda ahead=0: run.global_update + ahead >= ends  # type: ignore[method-assign]
        run.driver.drive(Unseen(run.config, ""))

    def row(self) -> dict[str, Any]:
        """What it has learned by now."""
        self.run.evaluate(Unseen(self.run.config, ""))
        outcomes = self.run.outcomes
        return {
            "algo": self.algo,
            "lag": self.lag,
            "anchored": self.lag > 0 and self.run.learner.algorithm.anchored,
            "seed": self.run.config.seed,
            "steps": self.run.global_step,
            "argmax": clears(outcomes, "argmax"),
            "sampled": clears(outcomes, "sampled"),
            "of": len(outcomes) // 2,
            **{name: self.newest.mean(name) for name in SHOWN},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="appo-1-1")
    parser.add_argument("--kinds", nargs="+", default=["appo:0", "appo:1", "appo:4", "appo:16"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--every", type=int, default=100_000, help="steps between two rows")
    parser.add_argument("--out", type=Path, help="a file to append the rows to")
    args = parser.parse_args()
    # It ends when it has been measured.
    os.environ["MARIO_ALLOW_CPU_AUTO"] = "1"
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        kinds = [kind.split(":") for kind in args.kinds]
        runs = [Measured(algo, int(lag), args, folder) for algo, lag in kinds]
        told = 0
        while runs[0].run.global_step < args.steps:
            for one in runs:
                one.go_on(TURN)
            if runs[0].run.global_step // args.every > told:
                told = runs[0].run.global_step // args.every
                for row in [json.dumps(one.row()) for one in runs]:
                    print(row, flush=True)
                    if args.out:
                        with args.out.open("a") as file:
                            file.write(row + "\n")
        for one in runs:
            one.run.close()


if __name__ == "__main__":
    main()
