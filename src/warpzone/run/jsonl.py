"""JSON lines: every line is complete JSON, from any thread."""

from __future__ import annotations

import json
import math
import threading
from pathlib import Path
from typing import Any

from warpzone.run.files import append_text


class JsonLines:
    """The JSONL files of one folder. A lock and one write for each batch of rows keep lines of
    different threads apart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Held while a file of the folder is changed, e.g. rotated.
        self.lock = threading.RLock()

    def append(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Adds a line for each row."""
        if rows:
            text = "".join(encode(row) + "\n" for row in rows)
            with self.lock:
                append_text(self.folder / name, text)


def encode(row: dict[str, Any]) -> str:
    """One line of JSON. Numbers that JSON does not know (NaN, infinities) become null."""
    try:
        return json.dumps(row, allow_nan=False, default=_plain)
    except ValueError:
        return json.dumps(_finite(row), allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    """NumPy's and PyTorch's scalars as Python's."""
    item = getattr(value, "item", None)
    if item is None:
        raise TypeError(f"{value!r} is not a value of a row")
    return _finite(item())


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return value
