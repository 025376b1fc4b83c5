"""The random player of benchmarks and demos: it mostly runs and jumps to the right."""

import numpy as np
from numpy.typing import NDArray

#: Chance of each action of the `simple` set.
CHANCES = (0.04, 0.14, 0.14, 0.28, 0.30, 0.05, 0.05)


def right_biased(rng: np.random.Generator, shape: int | tuple[int, ...]) -> NDArray[np.int64]:
    """Action ids of the `simple` set."""
    return rng.choice(len(CHANCES), size=shape, p=CHANCES).astype(np.int64)
