"""Random numbers that do not depend on other lanes: delays chosen by seed, samples by a counter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.infos import COLUMN
from warpzone.env.options import Options

#: Seeds tried at once when looking for those that draw each delay.
_TRIED = 128
_MOST_TRIES = 1000


def delay_seeds(
    rom: bytes, native: _engine.NativeProgram | None, stages: str, delays: Sequence[int]
) -> dict[int, int]:
    """For each delay a seed with which a lane of one stage draws it from the whole range. `stages`
    is any one stage, or `game`: what is drawn for a stage does not depend on which one it is.

    The engine draws a lane's delay when it resets it. With these seeds every lane of one vector
    starts with the delay that is wanted for it, through the engine's own draws.
    """
    found = _seeds(rom, native, stages, min(delays), max(delays))
    return {delay: found[delay] for delay in delays}


@lru_cache(maxsize=8)
def _seeds(
    rom: bytes, native: _engine.NativeProgram | None, stages: str, low: int, high: int
) -> dict[int, int]:
    options = Options(stages=stages, start_delay=(low, high), frame_stack=1, size=8)
    disabled = _engine.Autoreset.DISABLED
    vector = options.make_vector(rom, _TRIED, native=native, autoreset=disabled)
    obs = np.zeros((_TRIED, *vector.obs_shape), np.uint8)
    info = np.zeros((_TRIED, len(_engine.INFO_FIELDS)), np.int32)
    found: dict[int, int] = {}
    try:
        for attempt in range(_MOST_TRIES):
            seeds = range(attempt * _TRIED, (attempt + 1) * _TRIED)
            vector.seed(list(seeds))
            vector.reset(None, obs, info)
            for seed, delay in zip(seeds, info[:, COLUMN["start_delay"]].tolist(), strict=True):
                found.setdefault(delay, seed)
            if len(found) == high - low + 1:
                return found
    finally:
        vector.close()
    raise RuntimeError(f"no seed draws every start delay of {low}..{high}")


def uniform(keys: NDArray[np.uint64], step: int, count: int) -> NDArray[np.float64]:
    """[keys, count] numbers in (0, 1) that depend on key and step only."""
    counter = np.arange(count, dtype=np.uint64) + np.uint64(step * count)
    with np.errstate(over="ignore"):
        bits = _mix(_mix(keys)[:, None] + counter[None, :])
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64: neighbouring numbers in, unrelated ones out."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
