"""What the distributed path costs a run of one rank: updates of a plain run and of a run in a gloo
group of one, in turns. `python benchmarks/ranks_overhead.py --out benchmarks/ranks_overhead.json`

CPU time of the process is what is compared: on a machine that others use, seconds measure them."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from warpzone.bench.machine import describe
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig, load_preset
from warpzone.dist.group import GroupRanks
from warpzone.observers.progress import Unseen
from warpzone.train.loop import Run

#: Updates before the first that counts.
WARM_UP = 2


class Timed:
    """One run, update by update."""

    def __init__(self, config: TrainConfig, ranks: Ranks) -> None:
        self.run = Run(config, ranks=ranks)
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def update(self) -> None:
        """One update of the run."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.run.update(self.run.driver.play, Unseen(self.run.config, ""))
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)


def measure(config: TrainConfig, rounds: int, folder: Path) -> dict[str, Any]:
    """Both runs in turns; ratios are those of neighbours."""
    kinds = {"plain": ALONE, "grouped": GroupRanks(60.0, 1)}
    runs = {
        name: Timed(config.replace(runs_dir=str(folder), run_name=name), ranks)
        for name, ranks in kinds.items()
    }
    for number in range(WARM_UP + rounds):
        order = ("plain", "grouped") if number % 2 else ("grouped", "plain")
        for name in order:
            runs[name].update()
    plain, grouped = runs["plain"], runs["grouped"]
    same = all(
        torch.allclose(a, b, rtol=1e-3, atol=1e-4)
        for a, b in zip(plain.run.agent.parameters(), grouped.run.agent.parameters(), strict=True)
    )
    for timed in runs.values():
        timed.run.close()

    def ratio(kind: str) -> list[float]:
        pairs = zip(getattr(grouped, kind)[WARM_UP:], getattr(plain, kind)[WARM_UP:], strict=True)
        return [a / b for a, b in pairs]

    cpu, wall = ratio("cpu"), ratio("wall")
    return {
        "cpu_ratio": statistics.median(cpu),
        "cpu_quartiles": statistics.quantiles(cpu, n=4),
        "wall_ratio": statistics.median(wall),
        "cpu_seconds_per_update": statistics.median(plain.cpu[WARM_UP:]),
        "same_weights": same,
        "rounds": rounds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--algo", nargs="*", default=["ppo", "vtrace"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    timeout = timedelta(seconds=60)
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1, timeout=timeout)
    result: dict[str, Any] = {"machine": describe(), "preset": args.preset, "cases": {}}
    for algo in args.algo:
        config = load_preset(args.preset)
        changes: dict[str, Any] = {"algo": algo, "device": "cpu", "checkpoint_minutes": 0.0}
        if algo != "ppo":
            changes |= {"epochs": 1}
        with tempfile.TemporaryDirectory() as folder:
            result["cases"][algo] = measure(config.replace(**changes), args.rounds, Path(folder))
        print(algo, json.dumps(result["cases"][algo], indent=1), flush=True)
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
