"""How long replay takes to draw: the CPU's tree beside the device's scan, and to gather segments.

    python benchmarks/replay_sampling.py --append benchmarks/replay_sampling.jsonl
    python benchmarks/replay_sampling.py --device cpu       # where there is no GPU

Both samplers hold the same priorities. Rounds are interleaved; times are medians in milliseconds,
with the device waited for. `tree` includes moving the chosen slots to the device, as training does.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from warpzone.bench.machine import describe
from warpzone.data.replay.sampler import ScanSampler, TreeSampler
from warpzone.data.replay.storage import SegmentSpec, SegmentStorage


def main() -> None:
    """Measures all sizes and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--segments", default="64,256", help="drawn at a time")
    parser.add_argument("--capacities", default="1024,16384,262144", help="segments in the buffer")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--append", type=Path, help="file of JSON lines")
    options = parser.parse_args()
    device = torch.device(options.device)
    rows = []
    print("| capacity | drawn | tree (CPU), ms | scan (device), ms | gather, ms |")
    print("|---|---|---|---|---|")
    for capacity in map(int, options.capacities.split(",")):
        for count in map(int, options.segments.split(",")):
            row = measure(capacity, count, device, options.rounds)
            rows.append(row)
            print(
                f"| {capacity:,} | {count} | {row['tree_ms']:.3f} | {row['scan_ms']:.3f} | "
                f"{row['gather_ms']:.3f} |",
                flush=True,
            )
    if options.append is not None:
        about = {"device": str(device), "rounds": options.rounds, "machine": describe()}
        with options.append.open("a") as file:
            file.write(json.dumps({**about, "rows": rows}) + "\n")


def measure(capacity: int, count: int, device: torch.device, rounds: int) -> dict[str, Any]:
    """Medians of one size."""
    weights = torch.rand(capacity, generator=torch.Generator().manual_seed(0)) + 0.01
    tree, scan = TreeSampler(capacity, 1), ScanSampler(capacity, 1, device)
    for sampler in (tree, scan):
        sampler.set(torch.arange(capacity), weights)
    # Segments as `--preset quick` stores them; few are enough, because any slot takes as long.
    spec = SegmentSpec(length=128, stack=4, picture=(42, 42), actions=5, state=())
    storage = SegmentStorage(spec, 64, device)
    storage.size = 64
    slots = torch.arange(count) % 64
    cases: dict[str, Callable[[], object]] = {
        "tree_ms": lambda: tree.sample(count, capacity)[0].to(device),
        "scan_ms": lambda: scan.sample(count, capacity),
        "gather_ms": lambda: storage.gather(slots),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 3):
        for name, work in cases.items():
            seconds = timed(work, device)
            if number >= 3:
                times[name].append(1000 * seconds)
    medians = {name: round(statistics.median(found), 4) for name, found in times.items()}
    return {"capacity": capacity, "drawn": count, **medians}


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds until the device has done it."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
