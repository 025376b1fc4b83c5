"""warpzone: Super Mario Bros as a native, exact, batched engine with Gymnasium environments.

Importing this package is cheap: the environments are registered as soon as Gymnasium is imported
(before or after); the classes, the engine and PyTorch, which only agents need, are loaded on first
use.
"""

from typing import TYPE_CHECKING, Any

from warpzone.env.deferred import when_imported as _when_imported
from warpzone.env.registration import register as _register

if TYPE_CHECKING:
    from warpzone.env.rewards import RewardWeights
    from warpzone.env.single import MarioEnv
    from warpzone.env.vector import MarioVectorEnv
    from warpzone.eval.loaded import LoadedAgent, load_agent
    from warpzone.rom import RomError, RomMissingError

    __version__: str

__all__ = [
    "MarioVectorEnv",
    "MarioEnv",
    "RewardWeights",
    "load_agent",
    "LoadedAgent",
    "RomError",
    "RomMissingError",
    "__version__",
]

_HOMES = {
    "LoadedAgent": "warpzone.eval.loaded",
    "MarioEnv": "warpzone.env.single",
    "MarioVectorEnv": "warpzone.env.vector",
    "RewardWeights": "warpzone.env.rewards",
    "load_agent": "warpzone.eval.loaded",
    "RomError": "warpzone.rom",
    "RomMissingError": "warpzone.rom",
}

_when_imported("gymnasium", _register)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("warpzone")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module
    from importlib.util import find_spec

    if _HOMES[name].startswith("warpzone.eval") and find_spec("torch") is None:
        raise ImportError("agents need PyTorch; install it with: pip install 'warpzone[train]'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
