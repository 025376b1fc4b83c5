"""`metrics/latest.parquet`: the newest rows as columns, for pandas and polars."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.metrics import schema
from warpzone.run.files import write_atomically
from warpzone.run.names import PARQUET

#: Rows that are kept; older ones are in the JSONL files only.
ROWS = 10_000
#: Rows converted to columns at a time, so that writing takes no more memory in a long run than in a
#: short one.
GROUP = 1_000


class ParquetSink:
    """Keeps the newest rows in one block of numbers, so that memory does not grow with the run,
    and writes them on request, from any thread."""

    def __init__(self, folder: Path, before: Iterable[dict[str, Any]] = ()) -> None:
        """before: rows of the run so far."""
        self.path = folder / PARQUET
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._columns: dict[str, int] = {name: at for at, name in enumerate(schema.NAMES)}
        self._values = np.full((ROWS, len(self._columns)), np.nan)
        self._count = 0
        self._written = -1
        for row in before:
            self.write(row)

    def write(self, row: dict[str, Any]) -> None:
        """Stores the numbers of a row."""
        with self._lock:
            for name in row:
                if name not in self._columns and schema.find(name) is not None:
                    self._columns[name] = len(self._columns)
                    more = np.full((ROWS, 1), np.nan)
                    self._values = np.concatenate([self._values, more], axis=1)
            target = self._values[self._count % ROWS]
            target[:] = np.nan
            for name, value in row.items():
                at = self._columns.get(name)
                if at is not None and isinstance(value, int | float):
                    target[at] = value
            self._count += 1

    def save(self) -> None:
        """Replaces the file if there are new rows."""
        with self._writing:
            with self._lock:
                if self._count in (0, self._written):
                    return
                count, names = self._count, list(self._columns)
            self.path.parent.mkdir(exist_ok=True)
            write_atomically(
                self.path, lambda temporary: _save(temporary, names, self._parts(count, len(names)))
            )
            self._written = count

    def close(self) -> None:
        """Writes what is not written yet."""
        self.save()

    def _parts(self, count: int, columns: int) -> Iterator[NDArray[np.float64]]:
        """The newest of the first `count` rows, oldest first, a few at a time. Rows that were
        overwritten meanwhile are left out."""
        at = 0
        while at < count:
            with self._lock:
                at = max(at, self._count - ROWS)
                stop = min(at + GROUP, count)
                rows = self._values[np.arange(at, stop) % ROWS, :columns]
            if len(rows):
                yield rows
            at += GROUP


def _save(path: Path, names: list[str], parts: Iterable[NDArray[np.float64]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    fields = [schema.find(name) for name in names]
    types = [pa.int64() if one is not None and one.whole else pa.float64() for one in fields]
    shape = pa.schema(list(zip(names, types, strict=True)))
    with parquet.ParquetWriter(path, shape) as writer:
        for rows in parts:
            # NaN is null for pandas. A mask would be an array with a byte for each row, and NumPy
            # keeps blocks of every size below a KiB for ever.
            columns = [
                pa.array(column, from_pandas=True).cast(kind, safe=False)
                for column, kind in zip(rows.T, types, strict=True)
            ]
            writer.write_table(pa.table(columns, schema=shape))
