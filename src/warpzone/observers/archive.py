"""Writes where episodes may begin inside stages to `archive.json`, for the maps of a run."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.files import write_text
from warpzone.run.journal import say
from warpzone.run.names import ARCHIVE
from warpzone.run.rows import MOST_MOMENTS

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected

#: Seconds between two writings.
INTERVAL = 60.0


class ArchiveObserver(Observer):
    """Now and then, and at the end."""

    def __init__(self) -> None:
        self._next = 0.0

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        if time.monotonic() >= self._next:
            self._write(run)
            self._next = time.monotonic() + INTERVAL

    def ended(self, run: ObservedRun, reason: str) -> None:
        self._write(run)

    def _write(self, run: ObservedRun) -> None:
        moments = run.collector.guide.archive.places()[:MOST_MOMENTS]
        said = {"global_step": run.global_step, "moments": moments}
        try:
            write_text(run.folder.path / ARCHIVE, json.dumps(said) + "\n")
        except OSError as error:
            say(f"[train][warn] the archive is not in {ARCHIVE}: {error}")
