"""Where episodes ended, read from runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.env.stages import NUM_STAGES, stage_name
from warpzone.run.names import ARCHIVE, EVALS
from warpzone.run.opening import read_json
from warpzone.run.reader import RunReader
from warpzone.run.rows import episodes, moments

#: How ends are drawn: everything that is neither flag nor death is a stall.
KINDS = ("flag", "death", "stall")


@dataclass(frozen=True)
class Event:
    """The end of one episode. Without an area it is that of the stage's first map."""

    kind: str
    x: int
    #: Height above the bottom of the screen, if it is known.
    y: int | None
    furthest_x: int
    area: tuple[int, int] | None
    global_step: int | None
    policy: str


@dataclass(frozen=True)
class Restart:
    """A place of the archive: episodes of training may begin there."""

    x: int
    y: int
    area: tuple[int, int]
    attempts: int
    gains: int

    @property
    def share(self) -> float | None:
        """The share of attempts that gained ground; None before the first."""
        return self.gains / self.attempts if self.attempts else None


def read_restarts(run: Path, stage: str) -> list[Restart]:
    """The places of a stage in a run's archive as it was written last."""
    return [
        Restart(
            one["x"], one["y"], (one["area_type"], one["area_index"]), one["attempts"], one["gains"]
        )
        for one in moments(read_json(run, ARCHIVE))
        if one["stage"] < NUM_STAGES and stage_name(one["stage"]) == stage
    ]


def read_events(run: Path, stage: str, source: str = EVALS) -> list[Event]:
    """The ends of a stage's episodes in a run's evaluations or in its training, oldest first."""
    return events_of(episodes(RunReader(run).rows(source)), stage)


def events_of(rows: Iterable[dict[str, Any]], stage: str) -> list[Event]:
    """The ends of one stage's episodes among rows that `run.rows.episodes` has looked through."""
    return [_event(row) for row in rows if stage_of(row) == stage]


def stages_in(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Stages in the rows, in the game's order."""
    found = {stage_of(row) for row in rows}
    return [name for name in map(stage_name, range(NUM_STAGES)) if name in found]


def stage_of(row: dict[str, Any]) -> str:
    """Evaluations name a stage, training counts them; a whole game starts with 1-1."""
    stage = row.get("stage")
    if isinstance(stage, int):
        return stage_name(stage) if 0 <= stage < NUM_STAGES else stage_name(0)
    return str(stage)


def latest(events: Sequence[Event]) -> list[Event]:
    """Those of the newest evaluation."""
    newest = max((event.global_step or 0 for event in events), default=0)
    return [event for event in events if (event.global_step or 0) == newest]


def _event(row: dict[str, Any]) -> Event:
    reason = str(row.get("reason", ""))
    kind = reason if reason in KINDS else "stall"
    furthest = row.get("furthest_x", 0)
    placed = row.get("area_type", -1) >= 0 and {"x", "y", "area_index"} <= row.keys()
    return Event(
        kind=kind,
        x=row["x"] if placed else furthest,
        y=row["y"] if placed else None,
        furthest_x=furthest,
        area=(row["area_type"], row["area_index"]) if placed else None,
        global_step=row.get("global_step"),
        policy=str(row.get("policy", "training")),
    )
