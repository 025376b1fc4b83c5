"""TensorBoard: one event for each row, with a scalar for each field."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from warpzone.metrics import schema

FOLDER = "tensorboard"


class TensorBoardSink:
    """Writes to `tensorboard/` of a run. Events after the step of the checkpoint are hidden when
    a run is resumed."""

    def __init__(self, folder: Path, *, global_step: int = 0) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary
        from torch.utils.tensorboard import SummaryWriter

        self.path = folder / FOLDER
        self._summary: Any = Summary
        self._writer: Any = SummaryWriter(
            str(self.path), flush_secs=30, purge_step=global_step + 1 if global_step else None
        )
        marker = f"{folder.name}, {time.strftime('%Y-%m-%d %H:%M:%S %z')}, step {global_step}"
        self._writer.add_text("meta/started", marker, global_step)
        # A write error is detected here and not at the end.
        self._writer.flush()

    def write(self, row: dict[str, Any]) -> None:
        """The numbers of a row, as `group/name`."""
        summary = self._summary()
        for name, value in row.items():
            field = schema.find(name)
            if field is not None and isinstance(value, int | float) and math.isfinite(value):
                summary.value.add(tag=f"{field.group}/{name}", simple_value=value)
        # One event for the row: a hundred calls of add_scalar would take milliseconds.
        self._writer.file_writer.add_summary(summary, row["global_step"], walltime=row["timestamp"])

    def close(self) -> None:
        """Stops the writer thread."""
        self._writer.close()
