"""Other back-ends behind one interface: nes-py, stable-retro, and any Gymnasium environment.

The native engine is the back-end of choice. These are for comparing, and for games it cannot play;
they are imported on first use, and what they need may be missing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpzone.env.backends.env import BackendEnv, BackendVectorEnv
    from warpzone.env.backends.interface import BackendError, RamX
    from warpzone.env.backends.worker_lanes import WorkerSettings

__all__ = ["BackendEnv", "BackendError", "BackendVectorEnv", "RamX", "WorkerSettings"]

_HOMES = {
    "BackendEnv": "env",
    "BackendError": "interface",
    "BackendVectorEnv": "env",
    "RamX": "interface",
    "WorkerSettings": "worker_lanes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
