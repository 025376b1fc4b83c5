"""`metrics/heartbeats.parquet`: the newest heartbeats as columns, for pandas and polars."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warpzone.metrics.sinks.parquet import ROWS
from warpzone.run.files import write_atomically
from warpzone.run.names import HEARTBEATS_PARQUET

TEXTS = ("component", "phase", "message")
COUNTS = ("update", "global_step", "proc_threads", "proc_children", "proc_fds")
NUMBERS = (
    *("timestamp", "updates_per_sec", "steps_per_sec", "idle_seconds"),
    *("proc_cpu_percent", "proc_mem_rss_mb"),
    *("gpu_util_last", "gpu_util_mean_window", "gpu_util_max_window"),
    *("gpu_mem_used_mb", "gpu_mem_total_mb", "gpu_power_w", "gpu_temperature_c"),
)
NAMES = ("timestamp", *TEXTS, *COUNTS, *NUMBERS[1:])


class HeartbeatSink:
    """Keeps the newest heartbeats and writes them on request. From any thread."""

    def __init__(self, folder: Path, before: Iterable[dict[str, Any]] = ()) -> None:
        """before: heartbeats of the run so far."""
        self.path = folder / HEARTBEATS_PARQUET
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._rows: deque[tuple[Any, ...]] = deque(maxlen=ROWS)
        self._news = False
        for row in before:
            self.write(row)

    def write(self, row: dict[str, Any]) -> None:
        """Stores a heartbeat."""
        values = tuple(_value(name, row.get(name)) for name in NAMES)
        with self._lock:
            self._rows.append(values)
            self._news = True

    def save(self) -> None:
        """Replaces the file if there are new heartbeats."""
        with self._writing:
            with self._lock:
                if not self._news:
                    return
                rows, self._news = list(self._rows), False
            self.path.parent.mkdir(exist_ok=True)
            write_atomically(self.path, lambda temporary: _save(temporary, rows))

    def close(self) -> None:
        """Writes what is not written yet."""
        self.save()


def _value(name: str, value: Any) -> str | int | float | None:
    """A value of the column's type; heartbeats of a resumed run come from a file."""
    if name in TEXTS:
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if name in COUNTS:
        return int(value) if abs(value) < 2**63 else None
    return float(value)


def _save(path: Path, rows: list[tuple[Any, ...]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {**dict.fromkeys(TEXTS, pa.string()), **dict.fromkeys(COUNTS, pa.int64())}
    shape = pa.schema([(name, kinds.get(name, pa.float64())) for name in NAMES])
    columns = [
        pa.array(list(column), kind)
        for column, kind in zip(zip(*rows, strict=True), shape.types, strict=True)
    ]
    parquet.write_table(pa.table(columns, schema=shape), path)
