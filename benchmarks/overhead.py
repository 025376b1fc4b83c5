"""What metrics, monitor and heartbeat cost: the same training with and without them, in turns.

    python benchmarks/overhead.py --rounds 9 --updates 12 --out benchmarks/overhead.json

Two answers. `share` counts the cost itself: CPU time inside the observers and in writing rows, and
of all threads they start, over the CPU time of the whole process; others on the machine do not
disturb it. `overhead_wall` and `overhead_cpu` compare two runs that are kept alive and get the same
number of updates in every round (medians of the ratios of each round).

"With" is everything: rows to JSONL, Parquet and TensorBoard, monitor, heartbeat, stall and
slow-step watching and hints, with the background work ten times as often as the default. "Without"
writes no rows and has no observers.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from warpzone.bench.machine import describe
from warpzone.config import load_preset
from warpzone.observers.health import HealthObserver
from warpzone.observers.metrics import MetricsObserver
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.files import write_text
from warpzone.train.loop import Run

#: The preset `quick` with shorter updates: what is written costs the same for each of them.
CHANGES: dict[str, Any] = {
    "num_envs": 16,
    "rollout_steps": 64,
    "minibatch": 512,
    "max_steps": 10**7,
    "eval_interval": 0,
    "stop_at": 0.0,
    "checkpoint_minutes": 0.0,
    "checkpoint_interval": 0,
}
WATCHED = {"monitor_interval": 1.0, "heartbeat_interval": 3.0, "parquet_interval": 6.0}
UNWATCHED = {"log_interval": 10**9}
TARGET = 0.02


class Quiet:
    """A display that shows nothing."""

    def update(self, row: dict[str, Any]) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


class Timed(Observer):
    """Observers, and the CPU time that they and writing rows take in the thread that learns."""

    def __init__(self, run: Run, observers: Sequence[Observer]) -> None:
        self.seconds = 0.0
        self._observers = observers
        self._append = run.folder.append
        run.folder.append = self.append  # type: ignore[method-assign]

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Any) -> None:
        """Told to all, and timed."""
        began = time.thread_time()
        for observer in self._observers:
            observer.updated(run, row, collected)
        self.seconds += time.thread_time() - began

    def append(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Writes rows, and is timed."""
        began = time.thread_time()
        self._append(name, rows)
        self.seconds += time.thread_time() - began


def updates(run: Run, count: int) -> tuple[float, float]:
    """Seconds by the wall clock and of CPU time for some updates."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        run.update(run.driver.play, Quiet())  # type: ignore[arg-type]
    return time.perf_counter() - wall, time.process_time() - cpu


def watched_updates(run: Run, count: int) -> tuple[float, float, float]:
    """The same with everything, and the share of CPU time that is its own."""
    before = set(threading.enumerate())
    observers = (HealthObserver(run.config), MetricsObserver(run.config))
    for observer in observers:
        observer.started(run)
    append = run.folder.append
    timed = Timed(run, observers)
    run.observers = (timed,)
    wall, cpu = updates(run, count)
    threads = [thread for thread in threading.enumerate() if thread not in before]
    clocks = [time.pthread_getcpuclockid(thread.ident) for thread in threads if thread.ident]
    background = sum(time.clock_gettime(clock) for clock in clocks)
    run.folder.append = append  # type: ignore[method-assign]
    for observer in observers:
        observer.ended(run, "normal")
    return wall, cpu, (timed.seconds + background) / cpu


def main() -> int:
    """0 if the target is met."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--updates", type=int, default=12, help="updates of each run in a round")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    base = load_preset("quick").replace(**CHANGES, device=args.device)
    with tempfile.TemporaryDirectory() as folder:
        base = base.replace(runs_dir=folder)
        config = base.replace(run_name="with", enable_tensorboard=True, **WATCHED)
        watched = Run(config)
        bare = Run(base.replace(run_name="without", **UNWATCHED))
        times: dict[str, list[tuple[float, ...]]] = {"with": [], "without": []}
        for run in (watched, bare):
            updates(run, 2)
        for number in range(args.rounds):
            print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
            # Its threads live only while it is measured.
            times["with"].append(watched_updates(watched, args.updates))
            times["without"].append(updates(bare, args.updates))
        for run in (watched, bare):
            run.close()
    ratios = [
        median(a[kind] / b[kind] for a, b in zip(times["with"], times["without"], strict=True)) - 1
        for kind in (0, 1)
    ]
    share = median(one[2] for one in times["with"])
    result = {
        "machine": describe() | {"torch": torch.__version__, "device": str(watched.device)},
        "command": f"benchmarks/overhead.py --rounds {args.rounds} --updates {args.updates}",
        "steps_per_update": base.steps_per_update,
        "update_seconds": median(wall for wall, _ in times["without"]) / args.updates,
        "share": share,
        "overhead_wall": ratios[0],
        "overhead_cpu": ratios[1],
        "target": TARGET,
        "met": share < TARGET,
        "rounds": times,
    }
    text = json.dumps(result, indent=2) + "\n"
    if args.out:
        write_text(args.out, text)
    print(json.dumps({key: value for key, value in result.items() if key != "rounds"}, indent=2))
    return 0 if result["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
