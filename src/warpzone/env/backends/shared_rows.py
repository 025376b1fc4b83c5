"""Memory that a parent and its workers share: one row of results for each lane."""

from __future__ import annotations

from dataclasses import dataclass
from multiprocessing.context import BaseContext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine

#: What a step writes: name, shape of a row, type.
Layout = tuple[tuple[str, tuple[int, ...], str], ...]


def layout(obs_shape: tuple[int, ...]) -> Layout:
    """The arrays of a step, in the order in which `Lanes.step` takes them."""
    info = (len(_engine.INFO_FIELDS),)
    return (
        ("obs", obs_shape, "uint8"),
        ("reward", (), "float32"),
        ("terminated", (), "bool"),
        ("truncated", (), "bool"),
        ("info", info, "int32"),
        ("final_obs", obs_shape, "uint8"),
        ("final_info", info, "int32"),
    )


@dataclass(frozen=True)
class SharedRows:
    """Raw shared memory; handed to a worker when it is started."""

    lanes: int
    obs_shape: tuple[int, ...]
    blocks: tuple[Any, ...]

    @classmethod
    def make(cls, context: BaseContext, lanes: int, obs_shape: tuple[int, ...]) -> SharedRows:
        """Room for `lanes` rows of everything."""
        blocks = tuple(
            context.RawArray("B", lanes * int(np.prod(shape, dtype=int)) * np.dtype(kind).itemsize)
            for _, shape, kind in layout(obs_shape)
        )
        return cls(lanes, obs_shape, blocks)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The memory as arrays of all lanes."""
        return {
            name: np.frombuffer(block, kind).reshape(self.lanes, *shape)
            for (name, shape, kind), block in zip(layout(self.obs_shape), self.blocks, strict=True)
        }

    def row(self, lane: int) -> list[NDArray[Any]]:
        """One lane's part of each array, as arrays of one lane."""
        return [array[lane : lane + 1] for array in self.arrays().values()]
