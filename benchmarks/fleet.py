"""Actors and learner as separate processes beside the same training in one process, in turns.
`python benchmarks/fleet.py --actors 1 2 --rounds 5 --out benchmarks/fleet.jsonl`

One process is measured serial and overlapped; a fleet is compared with the faster of them in the
same round. On a machine that others use, more processes get more of it: there CPU time for each
step, that of all processes of a kind, says more than seconds do."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import torch

from warpzone.bench.machine import describe, load
from warpzone.collect.collector import Collected
from warpzone.config import TrainConfig, load_preset
from warpzone.dist.cluster import open_cluster
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.observers.progress import Unseen
from warpzone.train.loop import Run, collect_here

HERE = ("serial", "overlapped")


class Marks(Observer):
    """When updates were done, by the clock and in CPU seconds of this process and its actors."""

    def __init__(self) -> None:
        self.marks: list[tuple[float, float]] = []
        self.lags: list[float] = []

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        self.marks.append((time.perf_counter(), _cpu()))
        self.lags.append(row["policy_lag"])


def _cpu() -> float:
    """CPU seconds so far, those of all children included: Ray's own processes count too."""
    spent = time.process_time()
    for child in psutil.Process().children(recursive=True):
        try:
            times = child.cpu_times()
        except psutil.Error:
            continue
        spent += times.user + times.system
    return spent


class Measured:
    """A run that goes on for some updates when it is its turn."""

    def __init__(self, config: TrainConfig, collecting: Any = collect_here) -> None:
        self._marks = Marks()
        self.run = Run(config, [self._marks], collecting=collecting)
        self.steps: list[float] = []
        self.cpu: list[float] = []
        self.lags: list[float] = []
        self._resting = ExitStack()
        self._threads = torch.get_num_threads()

    def go_on(self, warm_up: int, updates: int, *, count: bool) -> None:
        """Updates of which the last ones are measured: what was collected ahead in the pause before
        is used up by then."""
        run, marks = self.run, self._marks
        ends = run.global_update + warm_up + updates
        run.done = lambda ahead=0: run.global_update + ahead >= ends  # type: ignore[method-assign]
        marks.marks, marks.lags = [], []
        with self.awake():
            run.driver.drive(Unseen(run.config, ""))
        (began, cpu_before), (ended, cpu_after) = marks.marks[warm_up - 1], marks.marks[-1]
        if count:
            steps = updates * run.config.steps_per_update
            self.steps.append(steps / (ended - began))
            self.cpu.append((cpu_after - cpu_before) / steps * 1e6)
            self.lags += marks.lags[warm_up:]

    @contextmanager
    def awake(self) -> Iterator[None]:
        """A fleet plays only in here, and its learner has fewer threads than others."""
        self._resting.close()
        torch.set_num_threads(self._threads)
        yield
        self._threads = torch.get_num_threads()
        crew = getattr(self.run.collector, "_crew", None)
        if crew is not None:
            self._resting.enter_context(crew._rest())

    def close(self) -> None:
        """Ends the run, and its actors."""
        self._resting.close()
        self.run.close()

    def result(self) -> dict[str, Any]:
        """Medians over the rounds."""
        return {
            "steps_per_second": round(statistics.median(self.steps), 1),
            "cpu_seconds_per_million_steps": round(statistics.median(self.cpu), 1),
            "lag_mean": round(statistics.mean(self.lags), 2),
        }


def measure(config: TrainConfig, args: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Makes a run of each kind and measures them."""
    from warpzone.dist.cluster import Cluster
    from warpzone.dist.fleet import FleetCollector

    def config_of(name: str, **changes: Any) -> TrainConfig:
        return config.replace(runs_dir=str(folder), run_name=name, **changes)

    measured: dict[str, Measured] = {
        "serial": Measured(config_of("serial")),
        "overlapped": Measured(config_of("overlapped", overlap_collect=True)),
    }
    for count in args.actors:
        name = f"actors {count}"
        changes = {"actors": count, "max_lag": args.max_lag}
        measured[name] = Measured(
            config_of(f"fleet-{count}", **changes),
            lambda run: FleetCollector(run, Cluster(remote=False)),
        )
    try:
        return compare(measured, args)
    finally:
        for one in measured.values():
            one.close()


def compare(measured: dict[str, Measured], args: argparse.Namespace) -> dict[str, Any]:
    """Rounds of all kinds, each in the reversed order of the last, and what they come to."""
    loads = []
    for number in range(args.rounds + 1):
        loads.append(load() or 0.0)
        for name in list(measured)[:: 1 if number % 2 else -1]:
            measured[name].go_on(args.warm_up, args.updates, count=number > 0)
    found: dict[str, Any] = {name: one.result() for name, one in measured.items()}
    best = [max(measured[name].steps[index] for name in HERE) for index in range(args.rounds)]
    least = [min(measured[name].cpu[index] for name in HERE) for index in range(args.rounds)]
    for count in args.actors:
        one = measured[f"actors {count}"]
        ratios = [mine / theirs for mine, theirs in zip(one.steps, best, strict=True)]
        cpu = [theirs / mine for mine, theirs in zip(one.cpu, least, strict=True)]
        found[f"actors {count}"] |= {
            "ratio": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in ratios],
            "cpu_ratio": round(statistics.median(cpu), 3),
        }
    return {"kinds": found, "loads": loads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--num-envs", type=int, default=0, help="0: the preset's")
    parser.add_argument("--minibatch", type=int, default=0, help="0: the preset's")
    parser.add_argument("--actors", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--max-lag", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=4, help="updates before those that count")
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--out", type=Path, help="a file to append the row to")
    args = parser.parse_args()
    # It ends when it has been measured.
    os.environ["MARIO_ALLOW_CPU_AUTO"] = "1"
    preset = load_preset(args.preset)
    config = preset.replace(
        algo="vtrace",
        epochs=1,
        target_kl=0.0,
        overlap_collect=False,
        device=args.device,
        num_envs=args.num_envs or preset.num_envs,
        minibatch=args.minibatch or preset.minibatch,
        max_steps=10**9,
        eval_interval=0,
        checkpoint_minutes=0.0,
        monitor_interval=0.0,
        heartbeat_interval=0.0,
        wall_lanes=0,
        stop_at=0.0,
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        open_cluster("", cpus=sum(args.actors), store=1 << 30),
    ):
        row = {
            **describe(),
            "device": torch.cuda.get_device_name() if args.device == "cuda" else "cpu",
            "preset": args.preset,
            "num_envs": config.num_envs,
            "max_lag": args.max_lag,
            "rounds": args.rounds,
            "updates": args.updates,
            **measure(config, args, Path(folder)),
        }
    print(json.dumps(row, indent=1))
    if args.out:
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
