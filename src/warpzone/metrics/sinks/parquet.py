"""`metrics/latest.parquet`: the newest rows as columns, for pandas and polars."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone.metrics import schema
from warpzone.run.files import write_atomically

FILE = Path("metrics") / "latest.parquet"
#: Rows that are kept; older ones are in the JSONL files only.
ROWS = 10_000


class ParquetSink:
    """Keeps the newest rows in one block of numbers, so that memory does not grow with the run, and
    writes them when told to, in whatever thread."""

    def __init__(self, folder: Path, before: Iterable[dict[str, Any]] = ()) -> None:
        """before: rows of the run so far."""
        self.path = folder / FILE
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._columns: dict[str, int] = {name: at for at, name in enumerate(schema.NAMES)}
        self._values = np.full((ROWS, len(self._columns)), np.nan)
        self._count = 0
        self._written = -1
        for row in before:
            self.write(row)

    def write(self, row: dict[str, Any]) -> None:
        """Keeps a row; text is left out."""
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
        """Replaces the file, if there is anything new."""
        with self._writing:
            with self._lock:
                if self._count in (0, self._written):
                    return
                count, names = self._count, list(self._columns)
                values = self._ordered()
            self.path.parent.mkdir(exist_ok=True)
            write_atomically(self.path, lambda temporary: _save(temporary, names, values))
            self._written = count

    def close(self) -> None:
        """Writes what is not written yet."""
        self.save()

    def _ordered(self) -> NDArray[np.float64]:
        if self._count <= ROWS:
            return self._values[: self._count].copy()
        return np.roll(self._values, -(self._count % ROWS), axis=0)


def _save(path: Path, names: list[str], values: NDArray[np.float64]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {}
    for at, name in enumerate(names):
        field = schema.find(name)
        column = values[:, at]
        array = pa.array(column, mask=np.isnan(column))
        columns[name] = (
            array.cast(pa.int64(), safe=False) if field is not None and field.whole else array
        )
    parquet.write_table(pa.table(columns), path)
