"""`metrics/heartbeats.parquet`: the newest heartbeats as columns, for pandas and polars."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.metrics.sinks.parquet import GROUP, ROWS
from warpzone.run.files import write_atomically
from warpzone.run.names import HEARTBEATS_PARQUET

TEXTS = ("component", "phase", "message")
COUNTS = (
    *("update", "global_step", "proc_threads", "proc_children", "proc_fds"),
    *("policy_lag", "lag_max", "actors_present", "actors_lost"),
)
NUMBERS = (
    *("timestamp", "updates_per_sec", "steps_per_sec", "idle_seconds"),
    *("proc_cpu_percent", "proc_mem_rss_mb"),
    *("gpu_util_last", "gpu_util_mean_window", "gpu_util_max_window"),
    *("gpu_mem_used_mb", "gpu_mem_total_mb", "gpu_power_w", "gpu_temperature_c"),
    "lag_p50",
)
NAMES = ("timestamp", *TEXTS, *COUNTS, *NUMBERS[1:])
#: A heartbeat in memory: texts are references, and numbers lie side by side.
KINDS = {**dict.fromkeys(TEXTS, np.object_), **dict.fromkeys(COUNTS, np.int64)}
RECORD = np.dtype([(name, KINDS.get(name, np.float64)) for name in NAMES])
#: In the place of a count that a heartbeat does not have; no count is as small.
NO_COUNT = np.iinfo(np.int64).min
EMPTY = tuple(
    None if name in TEXTS else NO_COUNT if name in COUNTS else float("nan") for name in NAMES
)


class HeartbeatSink:
    """Keeps the newest heartbeats in one block, so that memory does not grow with the run, and
    writes them on request. From any thread."""

    def __init__(self, folder: Path, before: Iterable[dict[str, Any]] = ()) -> None:
        """before: heartbeats of the run so far."""
        self.path = folder / HEARTBEATS_PARQUET
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._block = np.full(ROWS, np.array(EMPTY, RECORD))
        self._count = 0
        self._written = 0
        for row in before:
            self.write(row)

    def write(self, row: dict[str, Any]) -> None:
        """Stores a heartbeat."""
        values = tuple(
            _value(name, row.get(name), empty) for name, empty in zip(NAMES, EMPTY, strict=True)
        )
        with self._lock:
            self._block[self._count % ROWS] = values
            self._count += 1

    def save(self) -> None:
        """Replaces the file if there are new heartbeats."""
        with self._writing:
            count = self._count
            if count == self._written:
                return
            self.path.parent.mkdir(exist_ok=True)
            write_atomically(self.path, lambda temporary: _save(temporary, self._parts(count)))
            self._written = count

    def close(self) -> None:
        """Writes what is not written yet."""
        self.save()

    def _parts(self, count: int) -> Iterator[NDArray[Any]]:
        """The newest of the first `count` heartbeats, oldest first, a few at a time. Those that
        were overwritten meanwhile are left out."""
        for at in range(max(0, count - ROWS), count, GROUP):
            with self._lock:
                first = max(at, self._count - ROWS)
                rows = self._block[np.arange(first, min(at + GROUP, count)) % ROWS]
            if len(rows):
                yield rows


def _value(name: str, value: Any, empty: Any) -> Any:
    """A value of the column's type; heartbeats of a resumed run come from a file."""
    if name in TEXTS:
        return value if isinstance(value, str) else empty
    if isinstance(value, bool) or not isinstance(value, int | float):
        return empty
    if name in COUNTS:
        return int(value) if abs(value) < 2**63 else empty
    return float(value)


def _save(path: Path, parts: Iterable[NDArray[Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {**dict.fromkeys(TEXTS, pa.string()), **dict.fromkeys(COUNTS, pa.int64())}
    shape = pa.schema([(name, kinds.get(name, pa.float64())) for name in NAMES])

    with parquet.ParquetWriter(path, shape) as writer:
        for rows in parts:
            # Lists, because NumPy keeps blocks of every size below a KiB for ever.
            columns = [
                # NaN is null for pandas.
                pa.array(
                    [None if value == NO_COUNT else value for value in rows[name].tolist()],
                    kind,
                    from_pandas=True,
                )
                for name, kind in zip(NAMES, shape.types, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=shape))
