"""`warpzone bench overlap`: what collecting while learning is worth, over a grid of sizes."""

from __future__ import annotations

import csv
import json
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from importlib import import_module
from math import gcd
from pathlib import Path
from statistics import mean
from typing import Any

from warpzone.config import ConfigError, TrainConfig

MODES = ("sync", "overlap")
SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    mode: str
    num_envs: int
    rollout: int
    steps_per_sec_mean: float
    updates_per_sec_mean: float
    replay_fill_final: float
    gpu_util_mean_window: float | None
    duration_sec: float


def grid(
    base: TrainConfig, num_envs: Sequence[int], rollouts: Sequence[int], updates: int
) -> list[tuple[str, TrainConfig]]:
    """Every configuration, sync and overlap next to each other. A minibatch that does not divide
    a rollout becomes the largest part of it that does."""
    if updates < 2:
        raise ConfigError(f"--updates must be at least 2, and is {updates}")
    found = []
    for lanes in num_envs:
        for steps in rollouts:
            if base.whole_lanes:
                minibatch = steps * gcd(max(1, base.minibatch // max(1, steps)), lanes)
            else:
                minibatch = gcd(base.minibatch, lanes * steps)
            for mode in MODES:
                config = base.replace(
                    num_envs=lanes,
                    rollout_steps=steps,
                    minibatch=max(1, minibatch),
                    max_steps=max(1, updates * lanes * steps),
                    overlap_collect=mode == "overlap",
                    run_name=f"{mode}-{lanes}x{steps}",
                    eval_interval=0,
                    stop_at=0.0,
                    max_time=0.0,
                    log_interval=1,
                )
                found.append((mode, config))
    return found


def measure(mode: str, config: TrainConfig, warmup: float) -> Row:
    """One short run, averaged after the warm-up."""
    from warpzone.bench.train import Watch
    from warpzone.run.names import METRICS
    from warpzone.train.loop import Run

    with tempfile.TemporaryDirectory(prefix="warpzone-bench-") as folder:
        run = Run(config.replace(runs_dir=folder))
        gpu = GpuUse() if run.device.type == "cuda" else None
        began = time.perf_counter()
        try:
            run.learn(Watch(config))
            duration = time.perf_counter() - began
        finally:
            run.close()
            samples = gpu.stop() if gpu is not None else []
        text = (run.folder.path / METRICS).read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    return average(mode, config, rows, warmup, samples, duration)


def average(
    mode: str,
    config: TrainConfig,
    rows: Sequence[dict[str, Any]],
    warmup: float,
    samples: Sequence[tuple[float, float]],
    duration: float,
) -> Row:
    """The part of a run's metrics after the warm-up: steps and updates by the time they took."""
    first = min(max(1, round(warmup * len(rows))), len(rows) - 1)
    before, last = rows[first - 1], rows[-1]
    seconds = last["timestamp"] - before["timestamp"]
    window = [use for at, use in samples if at >= before["timestamp"]]
    return Row(
        mode=mode,
        num_envs=config.num_envs,
        rollout=config.rollout_steps,
        steps_per_sec_mean=(last["global_step"] - before["global_step"]) / seconds,
        updates_per_sec_mean=(last["update"] - before["update"]) / seconds,
        replay_fill_final=float(last.get("replay_fill_rate", 0.0)),
        gpu_util_mean_window=mean(window) if window else None,
        duration_sec=duration,
    )


class GpuUse:
    """Samples the use of the GPU in percent, if pynvml is installed."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            self._nvml: Any = import_module("pynvml")
        except ImportError:
            return
        try:
            self._nvml.nvmlInit()
            self._handle = self._nvml.nvmlDeviceGetHandleByIndex(0)
        except self._nvml.NVMLError:
            return
        self._thread = threading.Thread(target=self._watch, name="gpu use", daemon=True)
        self._thread.start()

    def stop(self) -> list[tuple[float, float]]:
        """When and how much."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        return self._samples

    def _watch(self) -> None:
        while not self._end.wait(SAMPLE_SECONDS):
            rates = self._nvml.nvmlDeviceGetUtilizationRates(self._handle)
            self._samples.append((time.time(), float(rates.gpu)))


def run_grid(
    cases: Sequence[tuple[str, TrainConfig]],
    warmup: float,
    folder: Path,
    tell: Callable[[str], None],
) -> Path:
    """Measures every case and writes the table; returns where it is."""
    from warpzone.run.files import write_atomically

    if not folder.is_dir():
        raise FileNotFoundError(f"the folder {folder} does not exist")
    rows = []
    for mode, config in cases:
        row = measure(mode, config, warmup)
        tell(f"{describe(mode, config)}: {row.steps_per_sec_mean:,.0f} steps/s")
        rows.append(row)
    path = folder / f"bench_overlap_{time.strftime('%Y%m%d-%H%M%S')}.csv"
    write_atomically(path, lambda temporary: write_csv(temporary, rows))
    return path


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Unknown values stay empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        writer.writeheader()
        for row in rows:
            values = asdict(row).items()
            writer.writerow({k: round(v, 4) if isinstance(v, float) else v for k, v in values})


def describe(mode: str, config: TrainConfig) -> str:
    """A case in a few words."""
    return (
        f"{mode:<7} num_envs={config.num_envs} rollout={config.rollout_steps} "
        f"minibatch={config.minibatch} updates={config.updates}"
    )
