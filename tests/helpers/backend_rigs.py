"""Lanes of any back-end with the arrays they write to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import rom as roms
from warpzone.env.backends.interface import Lanes, RamX
from warpzone.env.backends.opening import RomFile, make_spec, open_lanes
from warpzone.env.backends.shared_rows import layout
from warpzone.env.backends.worker_lanes import WorkerSettings
from warpzone.env.options import Options

QUICK = WorkerSettings(start_delay=0.0, reset_timeout=60.0, step_timeout=30.0)


class Rig:
    """Lanes and their arrays."""

    def __init__(self, lanes: Any) -> None:
        self.lanes = lanes
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.zeros((lanes.num_lanes, *shape), kind)
            for name, shape, kind in layout(tuple(lanes.obs_shape))
        }

    def reset(self, *seeds: int) -> None:
        self.lanes.seed(list(seeds))
        self.lanes.reset(None, self.arrays["obs"], self.arrays["info"])

    def step(self, *actions: int) -> None:
        self.lanes.step(np.array(actions, np.int64), *self.arrays.values())

    def __getattr__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]


@contextmanager
def rig(
    backend: str,
    lanes: int = 1,
    *,
    sync: bool = True,
    settings: WorkerSettings = QUICK,
    ram_x: RamX | None = None,
    said: list[str] | None = None,
    **options: Any,
) -> Iterator[Rig]:
    """Lanes that are closed at the end."""
    file = RomFile(roms.load_stored("eu").data)
    chosen = Options(**{"frame_stack": 1, "size": 42, **options})
    opened: Lanes | None = None
    try:
        spec = make_spec(backend, file, chosen, lanes, ram_x=ram_x)
        told = said if said is not None else []
        opened = open_lanes(spec, settings, sync=sync, report=lambda event: told.append(event.text))
        yield Rig(opened)
    finally:
        if opened is not None:
            opened.close()
        file.close()
