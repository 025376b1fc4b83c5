"""How fast processes of one machine exchange: gradients between ranks (gloo, loopback), and
rollouts from an actor to a learner (Ray's object store).

    python benchmarks/exchange.py --out benchmarks/exchange.json

Blocks are as large as the gradients of the presets `quick` and `fast-1-1`, and a rollout as one of
16 lanes x 64 steps of 84 x 84 pictures. Seconds are medians, by the clock."""

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

import numpy as np
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FileStore
from torch.multiprocessing.spawn import spawn

from warpzone.bench.machine import describe, load
from warpzone.config import load_preset
from warpzone.env.actions import action_table
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec

PRESETS = ("quick", "fast-1-1")
WARM_UP = 5
#: Bytes of the pictures of a rollout of an actor.
ROLLOUT = 16 * 64 * 84 * 84


def parameters(preset: str) -> int:
    """How many numbers a gradient has."""
    config = load_preset(preset)
    agent = Agent(model_spec(config, len(action_table(config.actions).masks)))
    return sum(parameter.numel() for parameter in agent.parameters())


def _rank(rank: int, ranks: int, meeting: str, sizes: list[int], rounds: int, out: str) -> None:
    """One rank: adds up a block of each size, in turns."""
    torch.set_num_threads(1)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = FileStore(meeting, ranks)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=ranks, timeout=timedelta(seconds=60)
    )
    blocks = [torch.ones(size) for size in sizes]
    seconds: list[list[float]] = [[] for _ in sizes]
    for number in range(WARM_UP + rounds):
        for block, times in zip(blocks, seconds, strict=True):
            dist.barrier()
            began = time.perf_counter()
            dist.all_reduce(block)
            if number >= WARM_UP:
                times.append(time.perf_counter() - began)
            block.fill_(1.0)
    if rank == 0:
        Path(out).write_text(json.dumps([statistics.median(times) for times in seconds]))
    dist.destroy_process_group()


def all_reduce(ranks: int, sizes: list[int], rounds: int) -> list[float]:
    """Median seconds of one exchange, for each size."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        arguments = (ranks, str(Path(folder) / "meeting"), sizes, rounds, str(out))
        spawn(_rank, arguments, nprocs=ranks)  # type: ignore[no-untyped-call]
        found: list[float] = json.loads(out.read_text())
    return found


def rollouts(rounds: int) -> float:
    """Median seconds from an actor's answer to the rollout in the learner's memory."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")

    class Sender:
        def send(self) -> Any:
            return np.ones(ROLLOUT, np.uint8)

    sender: Any = ray.remote(Sender).remote()
    times = []
    for number in range(WARM_UP + rounds):
        began = time.perf_counter()
        torch.from_numpy(ray.get(sender.send.remote()).copy())
        if number >= WARM_UP:
            times.append(time.perf_counter() - began)
    ray.shutdown()
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--ranks", type=int, nargs="*", default=[2])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sizes = {preset: parameters(preset) for preset in PRESETS}
    result: dict[str, Any] = {
        "command": f"benchmarks/exchange.py --rounds {args.rounds}",
        "machine": describe(),
        "parameters": sizes,
        "all_reduce_seconds": {},
    }
    for ranks in args.ranks:
        # Three numbers: what an exchange costs without its block.
        times = all_reduce(ranks, [3, *sizes.values()], args.rounds)
        names = ("three numbers", *sizes)
        result["all_reduce_seconds"][str(ranks)] = dict(zip(names, times, strict=True))
    result["rollout_bytes"] = ROLLOUT
    result["rollout_seconds"] = rollouts(args.rounds)
    result["load_after"] = load()
    print(json.dumps(result, indent=1))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
