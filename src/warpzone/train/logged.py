"""A line about the run now and then, in its log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from warpzone.run import journal
from warpzone.train.observer import Observer
from warpzone.train.progress import line

if TYPE_CHECKING:
    from warpzone.eval.evaluate import Outcome
    from warpzone.train.loop import Collected, Run

EVERY = 10.0


class Logged(Observer):
    """Opens the log for everybody who says something, and closes it."""

    def __init__(self) -> None:
        self._last = -EVERY

    def started(self, run: Run) -> None:
        journal.open_log(run.folder.path)
        journal.note(f"[train] {run.folder.path.name} on {run.device} from step {run.global_step}")

    def updated(self, run: Run, row: dict[str, Any], collected: Collected) -> None:
        if time.monotonic() - self._last > EVERY:
            self._last = time.monotonic()
            journal.note(line(row))

    def evaluated(self, run: Run, outcomes: list[Outcome]) -> None:
        self._last = -EVERY

    def ended(self, run: Run, reason: str) -> None:
        journal.note(f"[train] ended at step {run.global_step}: {reason}")
        journal.close_log()
