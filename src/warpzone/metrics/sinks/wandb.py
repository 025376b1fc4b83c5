"""Weights & Biases. Imported on first use; respects WANDB_MODE=offline."""

from __future__ import annotations

import importlib
import math
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpzone.metrics import schema
from warpzone.run.files import write_text

ID = "wandb-id"


class WandbSink:
    """One W&B run for each run; a resumed run continues it."""

    def __init__(self, folder: Path, project: str, config: dict[str, Any]) -> None:
        self._wandb: Any = importlib.import_module("wandb")
        with self._heard():
            self.run: Any = self._wandb.init(
                project=project,
                name=folder.name,
                id=_identity(folder),
                resume="allow",
                dir=str(folder),
                config=config,
            )

    def write(self, row: dict[str, Any]) -> None:
        """The numbers of a row, as `group/name`."""
        values = {}
        for name, value in row.items():
            field = schema.find(name)
            if field is not None and isinstance(value, int | float) and math.isfinite(value):
                values[f"{field.group}/{name}"] = value
        with self._heard():
            self.run.log(values, step=row["global_step"])

    def close(self) -> None:
        """Flushes and finishes."""
        with self._heard():
            self.run.finish()

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Turns errors of W&B into OSError, as for a full disk."""
        try:
            yield
        except self._wandb.Error as error:
            raise ConnectionError(f"W&B says: {error}") from error


def _identity(folder: Path) -> str:
    """An id that stays with the run when its folder is moved; names of folders are reused."""
    path = folder / ID
    if not path.is_file():
        write_text(path, uuid.uuid4().hex)
    return path.read_text()
