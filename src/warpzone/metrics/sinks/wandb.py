"""Weights & Biases. Imported on first use; respects WANDB_MODE=offline."""

from __future__ import annotations

import importlib
import math
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpzone.metrics import schema
from warpzone.run.files import write_text
from warpzone.run.opening import read_file

ID = "wandb-id"
#: Bytes of the file; an id has 32.
MOST_ID = 256
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,128}")


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
    try:
        identity = read_file(folder, ID, MOST_ID).decode(errors="replace").strip()
    except FileNotFoundError:
        identity = uuid.uuid4().hex
        write_text(folder / ID, identity)
    if not _PLAIN.fullmatch(identity):
        raise OSError(f"{folder / ID} holds no id of W&B; remove it for a new one")
    return identity
