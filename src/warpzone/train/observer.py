"""Who looks at a run while it goes on: metrics, health, control and pictures all plug in here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpzone.eval.evaluate import Outcome
    from warpzone.train.loop import Collected, Run
    from warpzone.train.progress import Progress


class Observer:
    """Told what happens in a run, in the thread that learns. Everything here does nothing; override
    what is of interest. What an observer raises ends the run."""

    def started(self, run: Run) -> None:
        """The run has its folder and is about to collect."""

    def updated(self, run: Run, row: dict[str, Any], collected: Collected) -> None:
        """An update is done. `row` is its metrics; what is added to it is written down as well."""

    def between(self, run: Run, progress: Progress) -> None:
        """The update is written down and the next one has not begun. Time spent here counts for
        neither."""

    def evaluated(self, run: Run, outcomes: list[Outcome]) -> None:
        """The agent was evaluated."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it: tensors, numbers and text in lists and dictionaries."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from `state_dict`, before `started`; empty where nothing was saved."""

    def ended(self, run: Run, reason: str) -> None:
        """The run is over: `normal`, `interrupt` or `exception`. Called once, whatever happened."""
