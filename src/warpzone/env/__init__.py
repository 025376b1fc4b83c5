"""Gymnasium environments over the native engine.

`MarioVectorEnv` is the direct class, `MarioEnv` one game of it. They are imported on first use, so
that `import warpzone` stays cheap.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpzone.env.rewards import RewardWeights
    from warpzone.env.single import MarioEnv
    from warpzone.env.vector import MarioVectorEnv

__all__ = ["MarioEnv", "MarioVectorEnv", "RewardWeights"]

_HOMES = {
    "MarioEnv": "warpzone.env.single",
    "MarioVectorEnv": "warpzone.env.vector",
    "RewardWeights": "warpzone.env.rewards",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
