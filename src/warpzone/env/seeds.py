"""Seeds: one 64-bit number for each lane, whatever the caller gives."""

from collections.abc import Sequence

import numpy as np


def lane_seeds(seed: int, num_lanes: int) -> list[int]:
    """Unrelated seeds for all lanes. Lane 0 is seeded as `one_seed(seed)`."""
    _check(seed)
    state = np.random.SeedSequence(seed).generate_state(num_lanes, np.uint64)
    return [int(value) for value in state]


def one_seed(seed: int) -> int:
    """The engine's seed of a lane whose own seed is `seed`."""
    return lane_seeds(seed, 1)[0]


def expand(seed: int | Sequence[int | None], num_lanes: int) -> list[int | None]:
    """A seed for each lane; None where a lane keeps its random stream."""
    if isinstance(seed, int | np.integer) and not isinstance(seed, bool):
        return list(lane_seeds(int(seed), num_lanes))
    if isinstance(seed, str | bool) or not isinstance(seed, Sequence | np.ndarray):
        raise TypeError(
            f"seed must be a whole number or a list with one for each lane, not {seed!r}"
        )
    if len(seed) != num_lanes:
        raise ValueError(f"{len(seed)} seeds were given for {num_lanes} lanes")
    return [None if one is None else one_seed(one) for one in seed]


def _check(seed: int) -> None:
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool):
        raise TypeError(f"a seed must be a whole number, not {seed!r}")
    if seed < 0:
        raise ValueError(f"a seed must not be negative, and is {seed}")
