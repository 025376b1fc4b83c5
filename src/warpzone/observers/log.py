"""Periodic lines about the run in its log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from warpzone.observers.observer import ObservedRun, Observer
from warpzone.observers.progress import line
from warpzone.run import journal

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected
    from warpzone.eval.evaluate import Outcome

EVERY = 10.0


class LogObserver(Observer):
    """Opens the log of the process, and closes it."""

    def __init__(self) -> None:
        self._last = -EVERY

    def started(self, run: ObservedRun) -> None:
        journal.open_log(run.folder.path)
        journal.note(f"[train] {run.folder.path.name} on {run.device} from step {run.global_step}")

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        if time.monotonic() - self._last > EVERY:
            self._last = time.monotonic()
            journal.note(line(row, run.config.max_time))

    def evaluated(self, run: ObservedRun, outcomes: list[Outcome]) -> None:
        self._last = -EVERY

    def ended(self, run: ObservedRun, reason: str) -> None:
        journal.note(f"[train] ended at step {run.global_step}: {reason}")
        journal.close_log()
