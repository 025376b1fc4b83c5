"""Where a training step's time goes: kernels of a decision and of an update, and collecting alone.

    python benchmarks/profile_training.py --preset fast-1-1 --epochs 4 --out profile.txt

On a GPU the times are those of its kernels, inside CUDA graphs too; on a CPU those of operators.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, TextIO

import torch
from torch.profiler import ProfilerActivity, profile

from warpzone.config import TrainConfig, load_preset
from warpzone.train.loop import Run

CPU = torch.autograd.DeviceType.CPU  # type: ignore[attr-defined]
LINES = 30
COLLECTIONS = 8


def main() -> None:
    """Profiles what the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--preset", default="fast-1-1")
    parser.add_argument("--algo", default="ppo")
    parser.add_argument("--encoder", default="nature")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--minibatch", type=int)
    parser.add_argument("--threads", default="0", help="engine threads to collect with: 0,8,15")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--out", type=argparse.FileType("w"), default=sys.stdout)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warpzone-profile-") as folder:
        config = load_preset(options.preset).replace(
            runs_dir=folder, device=options.device, eval_interval=0, stop_at=0.0,
            algo=options.algo, encoder=options.encoder, epochs=options.epochs,
        )  # fmt: skip
        if options.minibatch:
            config = config.replace(minibatch=options.minibatch)
        kernels(config, options.out)
        for threads in options.threads.split(","):
            collecting(config.replace(num_threads=int(threads), run_name=threads), options.out)


def kernels(config: TrainConfig, out: TextIO) -> None:
    """A decision of one group, and an update."""
    run = Run(config.replace(run_name="kernels"))
    try:
        rollout = run.collector.collect()
        table("decision", run.collector.actors[0].decide, 50, run.device, out)
        table("update", lambda: run.learner.update(rollout, 0.0), 2, run.device, out)
    finally:
        run.close()


def table(
    name: str, work: Callable[[], Any], times: int, device: torch.device, out: TextIO
) -> None:
    """The longest kernels, in microseconds for each call of `work`."""
    on_gpu = device.type == "cuda"
    wait: Callable[[], None] = torch.cuda.synchronize if on_gpu else lambda: None

    def repeat() -> float:
        began = time.perf_counter()
        for _ in range(times):
            work()
        wait()
        return (time.perf_counter() - began) / times

    repeat()
    plain = repeat()
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities) as found:
        repeat()
    events = [event for event in found.key_averages() if on_gpu == (event.device_type != CPU)]
    key = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    events.sort(key=lambda event: -getattr(event, key))
    total = sum(getattr(event, key) for event in events) / times
    print(f"{name}: {1e3 * plain:.3f} ms, of which {total / 1e3:.3f} ms in:", file=out)
    for event in events[:LINES]:
        each = getattr(event, key) / times
        print(f"{each:12.1f} us {event.count / times:8.1f}x {event.key[:100]}", file=out)


def collecting(config: TrainConfig, out: TextIO) -> None:
    """Rollouts without a learner."""
    run = Run(config)
    rates = []
    try:
        for number in range(2 + COLLECTIONS):
            if number == 2:
                run.collector.clock.take()
            began = time.perf_counter()
            run.collector.collect()
            if run.device.type == "cuda":
                torch.cuda.synchronize()
            rates.append(config.steps_per_update / (time.perf_counter() - began))
        seconds = run.collector.clock.take()
    finally:
        run.close()
    split = {owner: f"{1e3 * spent / COLLECTIONS:.1f} ms" for owner, spent in seconds.items()}
    rate = statistics.median(rates[2:])
    print(f"collecting, --num-threads {config.num_threads}: {rate:,.0f} steps/s {split}", file=out)


if __name__ == "__main__":
    main()
