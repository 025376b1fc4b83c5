"""Ways through a stage that are found without the network, where trials with it found nothing."""

from __future__ import annotations

import numpy as np

from warpzone import _engine
from warpzone.collect.lanes import lane_options
from warpzone.collect.search import find_way
from warpzone.config import TrainConfig
from warpzone.env.stages import stage_name
from warpzone.eval.evaluate import STEP_LIMIT, STUCK_AFTER
from warpzone.eval.policy import cores
from warpzone.teach.tasks import Start


def search_way(
    config: TrainConfig,
    rom: bytes,
    native: _engine.NativeProgram | None,
    start: Start,
    actions: int,
    seed: int,
    most_steps: int,
) -> tuple[list[int] | None, int]:
    """Actions that lead from a start to the flag, if any are found, and the steps that took.
    actions: how many there are; all are equally likely to be tried."""
    way, steps = find_way(
        lane_options(
            config,
            stages=stage_name(start.stage),
            start_delay=(start.start_delay, start.start_delay),
            time_limit=STEP_LIMIT,
            stagnation_limit=STUCK_AFTER,
        ),
        rom,
        native,
        stage=start.stage,
        seed=seed,
        chances=np.full(actions, 1.0 / actions),
        most_steps=most_steps,
        num_threads=cores(),
    )
    return (None if way is None else list(way.actions)), steps
