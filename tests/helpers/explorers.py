"""Explorers with an agent that has learned nothing, and what they work at."""

from typing import Any

import torch
from tiny_runs import make_agent, tiny

from warpzone import rom
from warpzone.env.stages import parse_stages
from warpzone.rom import native
from warpzone.teach.explorer import Explorer
from warpzone.teach.places import Place
from warpzone.teach.table import Decisions
from warpzone.teach.tasks import Attempt, Order, Start, Task

STAGE = parse_stages("1-1")[0]
STARTS = (Start(STAGE, 3), Start(STAGE, 17, drawn=True), Start(STAGE, 60))


def config_of(memory: str = "gru", **changes: Any) -> Any:
    values = {"stages": "1-1", "memory": memory, "previous_action": True, "frame_stack": 3}
    return tiny(**{**values, "stagnation_limit": 250, **changes})


def new(memory: str = "gru", seed: int = 4, **others: Any) -> Explorer:
    """With an agent that has learned nothing."""
    config, image = config_of(memory), rom.find(None)
    return Explorer(make_agent(config), config, image, native.load(image), seed=seed, **others)


def task(start_delay: int = 5) -> Task:
    return Task(Start(STAGE, start_delay), Place((0,), b"", (), None, 0))


def clear(looking: Explorer, one: Task, forced: int, alone: bool = False) -> None:
    """An attempt that reaches the flag with so many shown steps."""
    attempt = Attempt(Order(one, one.door, [2] * forced, alone=alone), ())
    row = torch.tensor([[0.0, 1.0, 0.0]])
    for _ in range(forced + 1):
        looking._choose(Decisions(row, row, row[:, 0]), [attempt])
    looking._cleared(attempt)
