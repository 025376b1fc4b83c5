"""Completes every row and passes it to the sinks. JSONL is always one of them: the loop appends
the row to `metrics.jsonl` right after."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from warpzone.config import ConfigError
from warpzone.config.metrics import MetricsConfig
from warpzone.health.ticker import FAILURES, Ticker, why
from warpzone.metrics import schema
from warpzone.metrics.sinks import Sink
from warpzone.metrics.sinks.heartbeats import HeartbeatSink
from warpzone.metrics.sinks.parquet import ROWS, ParquetSink
from warpzone.metrics.sinks.tensorboard import TensorBoardSink
from warpzone.metrics.sinks.wandb import WandbSink
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run import rotation
from warpzone.run.journal import say
from warpzone.run.names import ALERTS, ENV_EVENTS, EPISODES, EVALS, HEARTBEAT, METRICS
from warpzone.run.reader import read_rows

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected

ROTATED = (METRICS, EPISODES, EVALS, HEARTBEAT, ALERTS, ENV_EVENTS)
#: Seconds between two searches for finished parts to compress.
COMPRESS_EVERY = 5.0
MB = 1_000_000


class MetricsObserver(Observer):
    """A sink that fails is reported and dropped; the run continues without it."""

    def __init__(self, config: MetricsConfig) -> None:
        self.config = config
        self.sinks: dict[str, Sink] = {}
        self._heartbeats: HeartbeatSink | None = None
        self._tickers: list[Ticker] = []
        for wanted, flag, package in (
            (config.enable_tensorboard, "--enable-tensorboard", "tensorboard"),
            (config.wandb_project, "--wandb-project", "wandb"),
        ):
            if wanted and importlib.util.find_spec(package) is None:
                raise ConfigError(
                    f"{flag} needs the package {package}; "
                    f"install it with: pip install 'warpzone[{package}]'"
                )

    def started(self, run: ObservedRun) -> None:
        config, folder = self.config, run.folder.path
        if config.enable_tensorboard:
            self._open("tensorboard", lambda: TensorBoardSink(folder, global_step=run.global_step))
            if "tensorboard" in self.sinks:
                say(f"[train][log] tensorboard_log_dir={folder / 'tensorboard'}")
        if config.wandb_project:
            settings = dataclasses.asdict(run.config)
            self._open("wandb", lambda: WandbSink(folder, config.wandb_project, settings))
        if config.parquet_interval:
            self._start_parquet(run)
        if config.metrics_rotate_mb:
            self._tick("compress", COMPRESS_EVERY, lambda: self._compress(run))

    def _start_parquet(self, run: ObservedRun) -> None:
        if importlib.util.find_spec("pyarrow") is None:
            say("[train][warn] there is no pyarrow: metrics/latest.parquet is not written")
            return
        heartbeats = HeartbeatSink(run.folder.path, read_rows(run.folder.path, HEARTBEAT, ROWS))
        self._heartbeats = heartbeats
        self._tick("heartbeats", self.config.parquet_interval, heartbeats.save)
        before = read_rows(run.folder.path, METRICS, ROWS)
        parquet = ParquetSink(run.folder.path, before)
        self.sinks["parquet"] = parquet
        self._tick("parquet", self.config.parquet_interval, parquet.save)

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        row["model_compiled"] = int(run.config.compile)
        row["update_time"] = 1.0 / row["updates_per_sec"]
        row["rollout_time"] = sum(collected.owners.values())
        row["learn_time"] = row.get("time_learn")
        schema.complete(row)
        if run.global_update % run.config.log_interval:
            return
        for name, sink in list(self.sinks.items()):
            self._guard(name, functools.partial(sink.write, row))
        if self.config.metrics_rotate_mb:
            self._rotate(run)

    def take_heartbeat(self, row: dict[str, Any]) -> None:
        """Takes a line of heartbeat.jsonl, from any thread; those from before `started` are read
        from there."""
        if self._heartbeats is not None:
            self._heartbeats.write(row)

    def ended(self, run: ObservedRun, reason: str) -> None:
        for ticker in self._tickers:
            ticker.close()
        if self._heartbeats is not None:
            self._guard("heartbeats", self._heartbeats.close)
        for name, sink in list(self.sinks.items()):
            self._guard(name, sink.close)
        if self.config.metrics_rotate_mb:
            self._guard("compress", lambda: self._compress(run))

    # --- files ----------------------------------------------------------------------------------
    def _rotate(self, run: ObservedRun) -> None:
        for name in ROTATED:
            path = run.folder.path / name
            if path.exists() and path.stat().st_size >= self.config.metrics_rotate_mb * MB:
                rotation.rotate(run.folder.lines, name)

    def _compress(self, run: ObservedRun) -> None:
        for name in ROTATED:
            rotation.compress(run.folder.path, name)

    # --- what may fail --------------------------------------------------------------------------
    def _open(self, name: str, make: Callable[[], Sink]) -> None:
        self._guard(name, lambda: self.sinks.__setitem__(name, make()))

    def _guard(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except FAILURES as error:
            self._leave_out(name, error)

    def _tick(self, name: str, interval: float, call: Callable[[], None]) -> None:
        failed = functools.partial(self._leave_out, name)
        self._tickers.append(Ticker(name, interval, call, failed))

    def _leave_out(self, name: str, error: Exception) -> None:
        self.sinks.pop(name, None)
        say(f"[train][warn] {name} cannot be written and is left out from now on: {why(error)}")
