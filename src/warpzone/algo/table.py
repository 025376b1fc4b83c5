"""The algorithms by the name that `--algo` gives them."""

from __future__ import annotations

from collections.abc import Callable

from warpzone.algo.a2c import A2c
from warpzone.algo.algorithm import Algorithm
from warpzone.algo.appo import Appo
from warpzone.algo.ppo import Ppo
from warpzone.algo.vtrace import Vtrace
from warpzone.config.algorithm import AlgorithmConfig

ALGORITHMS: dict[str, Callable[[AlgorithmConfig], Algorithm]] = {
    "ppo": Ppo,
    "a2c": A2c,
    "vtrace": Vtrace,
    "appo": Appo,
}
