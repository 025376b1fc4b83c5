"""What the distributed path costs a run of one rank: updates of a plain run and of a run in a group
of one, in turns.

    python benchmarks/ranks_overhead.py --out benchmarks/ranks_overhead.json
    python benchmarks/ranks_overhead.py --device cuda --preset fast-1-1 --algo ppo --rounds 15 \
        --out benchmarks/ranks_overhead_cuda.json

On the CPU the group is gloo's, and CPU time of the process is what is compared: on a machine that
others use, seconds measure them. On a GPU it is NCCL's, seconds are compared, and both kinds of run
are measured without CUDA graphs as well."""

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

#: Updates before the first that counts: NCCL meets, and graphs are recorded for each of two stores.
WARM_UP = {"cpu": 2, "cuda": 4}


class Kept(Unseen):
    """Keeps the rows."""

    def __init__(self, config: TrainConfig) -> None:
        super().__init__(config, "")
        self.rows: list[dict[str, Any]] = []

    def update(self, row: dict[str, Any]) -> None:
        self.rows.append(row)


class Timed:
    """One run, update by update. Runs of one process share the GPU's generator, so each brings its
    own state of it along."""

    def __init__(self, config: TrainConfig, ranks: Ranks) -> None:
        self.run = Run(config, ranks=ranks)
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self.shown = Kept(config)
        self._drawn = self._generator()

    def _generator(self) -> torch.Tensor | None:
        return torch.cuda.get_rng_state() if self.run.device.type == "cuda" else None

    def update(self) -> None:
        """One update of the run."""
        if self._drawn is not None:
            torch.cuda.set_rng_state(self._drawn)
            torch.cuda.synchronize()
        wall, cpu = time.perf_counter(), time.process_time()
        self.run.update(self.run.driver.play, self.shown)
        if self._drawn is not None:
            torch.cuda.synchronize()
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)
        self._drawn = self._generator()

    def graphs(self) -> int:
        """How many parts of optimiser steps are recorded."""
        return len(self.run.learner._steps._recorded)


def ratios(first: list[float], second: list[float]) -> list[float]:
    """Of neighbours."""
    return [a / b for a, b in zip(first, second, strict=True)]


def measure(config: TrainConfig, rounds: int, folder: Path) -> dict[str, Any]:
    """Both runs in turns; ratios are those of neighbours."""
    device, group = config.device, GroupRanks(60.0, 1)
    kinds: dict[str, tuple[Ranks, bool]] = {"plain": (ALONE, True), "grouped": (group, True)}
    if device == "cuda":
        kinds |= {"plain_no_graphs": (ALONE, False), "grouped_no_graphs": (group, False)}
    runs = {}
    for name, (ranks, graphs) in kinds.items():
        changes = {"runs_dir": str(folder), "run_name": name, "cuda_graphs": graphs}
        runs[name] = Timed(config.replace(**changes), ranks)
    skipped = WARM_UP[device]
    for number in range(skipped + rounds):
        for name in list(runs) if number % 2 else reversed(list(runs)):
            runs[name].update()
    plain, grouped = runs["plain"], runs["grouped"]
    pairs = list(zip(plain.run.agent.parameters(), grouped.run.agent.parameters(), strict=True))
    apart = max(float((a - b).detach().abs().max()) for a, b in pairs)
    same = all(torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in pairs)
    for timed in runs.values():
        timed.run.close()
    cpu = ratios(grouped.cpu[skipped:], plain.cpu[skipped:])
    wall = ratios(grouped.wall[skipped:], plain.wall[skipped:])
    found = {
        "cpu_ratio": statistics.median(cpu),
        "cpu_quartiles": statistics.quantiles(cpu, n=4),
        "wall_ratio": statistics.median(wall),
        "wall_quartiles": statistics.quantiles(wall, n=4),
        "cpu_seconds_per_update": statistics.median(plain.cpu[skipped:]),
        "same_weights": same,
        "largest_difference_of_weights": apart,
        "rounds": rounds,
    }
    if device == "cuda":
        rows = grouped.shown.rows[skipped:]
        found["wall_seconds_per_update"] = {
            name: statistics.median(timed.wall[skipped:]) for name, timed in runs.items()
        }
        found["recorded_graphs"] = {name: timed.graphs() for name, timed in runs.items()}
        found["communication_time_share"] = statistics.median(
            row["communication_time_share"] for row in rows
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--algo", nargs="*", default=["ppo", "vtrace"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--num-threads", type=int, default=0, help="of the engine; 0: the preset's")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    for backend in ("GLOO", "NCCL"):
        os.environ.setdefault(f"{backend}_SOCKET_IFNAME", "lo")
    result: dict[str, Any] = {"machine": describe(), "preset": args.preset, "cases": {}}
    result |= {"device": args.device, "torch": torch.__version__}
    if args.device == "cuda":
        torch.cuda.set_device(0)
        result["gpu"] = torch.cuda.get_device_name()
        result["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    dist.init_process_group(
        "nccl" if args.device == "cuda" else "gloo",
        store=HashStore(),
        rank=0,
        world_size=1,
        timeout=timedelta(seconds=60),
    )
    for algo in args.algo:
        config = load_preset(args.preset)
        changes: dict[str, Any] = {"algo": algo, "device": args.device, "checkpoint_minutes": 0.0}
        # Evaluations are no part of an update.
        changes |= {"eval_interval": 0}
        if algo != "ppo":
            changes |= {"epochs": 1}
        if args.num_threads:
            changes |= {"num_threads": args.num_threads}
        with tempfile.TemporaryDirectory() as folder:
            result["cases"][algo] = measure(config.replace(**changes), args.rounds, Path(folder))
        print(algo, json.dumps(result["cases"][algo], indent=1), flush=True)
        if args.out:
            args.out.write_text(json.dumps(result, indent=1) + "\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
