"""Runs with actors on a Ray that is there already, and everything about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from rank_runs import Notes
from tiny_runs import Recorder

from warpzone.collect.collector import Collector
from warpzone.config import TrainConfig
from warpzone.dist.cluster import Cluster
from warpzone.dist.fleet import FleetCollector
from warpzone.observers.observer import Observer
from warpzone.run.resume import find_start
from warpzone.train.loop import Run
from warpzone.train.saving import state_of


def fleet(
    config: TrainConfig,
    *,
    updates: int = 0,
    cluster: Cluster | None = None,
    save: bool = False,
    watch: Callable[[FleetCollector], Observer] | None = None,
    enough: Callable[[dict[str, Any]], bool] = lambda row: True,
) -> dict[str, Any]:
    """A run to the end of its budget, or of so many updates and a row that is `enough`; `save`
    leaves a checkpoint. It goes on from where an earlier one of its name ended, if it is to."""
    made: list[FleetCollector] = []

    def collecting(run: Run) -> Collector:
        made.append(FleetCollector(run, cluster or Cluster(remote=False)))
        return cast("Collector", made[0])

    notes = Notes()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    start = find_start(config, lambda text: None)
    observers: list[Observer] = [notes]
    run = Run(config, observers, start=start, collecting=collecting)
    if watch is not None:
        run.observers = (notes, watch(made[0]))
    shown = Recorder()
    try:
        if updates:
            run.done = lambda ahead=0: (  # type: ignore[method-assign]
                run.global_update + ahead >= updates and enough(notes.rows[-1])
            )
        run.learn(shown)  # type: ignore[arg-type]
        state = state_of(run, lanes=True)
        if save:
            run.save("interrupt")
    finally:
        run.close()
        torch.set_num_threads(before)
    return {
        "weights": {name: part.clone() for name, part in run.agent.state_dict().items()},
        "state": state,
        "episodes": notes.episodes,
        "actions": torch.stack(notes.actions),
        "rows": notes.rows,
        "notes": run.notes,
        "folder": run.folder.path,
    }
