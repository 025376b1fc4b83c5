"""Runs as ranks of a pool make them, and as one process does."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from tiny_runs import Recorder

from warpzone.collect.collector import Collected
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.learn.together import Together
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.resume import find_start
from warpzone.train.loop import Run
from warpzone.train.saving import state_of


class Notes(Observer):
    """Keeps the episodes, lane by lane, what they were learned from, and the metrics."""

    def __init__(self) -> None:
        self.episodes: list[Any] = []
        self.rows: list[dict[str, Any]] = []
        self.actions: list[torch.Tensor] = []

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        self.episodes += [dataclasses.astuple(episode) for episode in collected.episodes]
        self.rows.append(row)
        self.actions.append(collected.rollout.actions.clone())


def learned(
    ranks: Ranks,
    config: TrainConfig,
    *,
    updates: int = 0,
    evaluate: bool = False,
    even: bool = False,
) -> dict[str, Any]:
    """A run to the end of its budget or of so many updates, and everything about it. It goes on
    from where an earlier one of its name ended, if the configuration says so. even: with the shares
    of minibatches that recorded steps have."""
    notes = Notes()
    torch.set_num_threads(1)
    start = ranks.told(lambda: find_start(config, lambda text: None))
    run = Run(config, [notes], start=start, ranks=ranks)
    shown = Recorder()
    try:
        if even:
            run.learner._together = Together(config, ranks, run.learner, even=True)
        if updates:
            run.done = lambda ahead=0: run.global_update + ahead >= updates  # type: ignore[method-assign]
        run.learn(shown)  # type: ignore[arg-type]
        if evaluate:
            run.evaluate(shown)  # type: ignore[arg-type]
        state = state_of(run, lanes=True)
        run.save("interrupt")
    finally:
        run.close()
    return {
        "weights": {name: part.clone() for name, part in run.agent.state_dict().items()},
        "state": state,
        "episodes": notes.episodes,
        "actions": torch.stack(notes.actions),
        "rows": notes.rows,
        "notes": run.notes,
        "outcomes": run.outcomes,
        "folder": run.folder.path,
    }


def alone(config: TrainConfig, **how: Any) -> dict[str, Any]:
    """The same in one process."""
    before = torch.get_num_threads()
    try:
        return learned(ALONE, config, **how)
    finally:
        torch.set_num_threads(before)
