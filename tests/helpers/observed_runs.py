"""Tiny runs with observers, from their start to their end, but for the evaluation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tiny_runs import Recorder, tiny

from warpzone.observers.observer import Observer
from warpzone.train.loop import Run


def observed(folder: Path, *kinds: Any, **changes: Any) -> Run:
    """A run `folder/run`, already over; each kind of observer is made from the configuration."""
    config = tiny(runs_dir=str(folder), run_name="run", **changes)
    return learn(Run(config, [kind(config) for kind in kinds]))


def learn(run: Run) -> Run:
    """Tells the observers what `Run.train` tells them."""
    told: Sequence[Observer] = run.observers
    reason = "exception"
    try:
        for observer in told:
            observer.started(run)
        run.learn(Recorder())  # type: ignore[arg-type]
        reason = "normal"
    finally:
        run.close()
        for observer in told:
            observer.ended(run, reason)
    return run
