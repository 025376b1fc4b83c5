"""Writes how the environments of other back-ends were made, and lost, to `env.jsonl`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.journal import say
from warpzone.run.names import ENV_EVENTS

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected


class EnvObserver(Observer):
    """The lanes are made before the run has a folder, so that their events wait for it."""

    def started(self, run: ObservedRun) -> None:
        self._write(run)

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        self._write(run)

    def ended(self, run: ObservedRun, reason: str) -> None:
        self._write(run)

    def _write(self, run: ObservedRun) -> None:
        events = run.collector.groups.take_events()
        if not events:
            return
        try:
            run.folder.append(
                ENV_EVENTS, [{**row, "global_step": run.global_step} for row in events]
            )
        except OSError as error:
            say(f"[train][warn] events are not in {ENV_EVENTS}: {error}")
