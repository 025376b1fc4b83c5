"""warpzone: Super Mario Bros as a native, exact, batched engine with Gymnasium environments.

Importing this package is cheap: the environments are registered as soon as Gymnasium is imported
(before or after); the classes, the engine and PyTorch, which only agents need, are loaded on first
use.
"""

from typing import TYPE_CHECKING, Any

from warpzone.env.deferred import when_imported as _when_imported
from warpzone.env.registration import register as _register

if TYPE_CHECKING:
    from warpzone.collect.own_reward import Transition
    from warpzone.config import ConfigError, TrainConfig
    from warpzone.env.rewards import RewardWeights
    from warpzone.env.single import MarioEnv
    from warpzone.env.vector import MarioVectorEnv
    from warpzone.eval.evaluation import Evaluation, evaluate
    from warpzone.eval.loaded import LoadedAgent, load_agent
    from warpzone.observers.observer import Observer
    from warpzone.rom import RomError, RomMissingError
    from warpzone.train.api import Trained, train

    __version__: str

__all__ = [
    "MarioVectorEnv",
    "MarioEnv",
    "RewardWeights",
    "train",
    "Trained",
    "TrainConfig",
    "ConfigError",
    "load_agent",
    "LoadedAgent",
    "evaluate",
    "Evaluation",
    "Observer",
    "Transition",
    "RomError",
    "RomMissingError",
    "__version__",
]

_HOMES = {
    "ConfigError": "warpzone.config",
    "Evaluation": "warpzone.eval.evaluation",
    "LoadedAgent": "warpzone.eval.loaded",
    "MarioEnv": "warpzone.env.single",
    "MarioVectorEnv": "warpzone.env.vector",
    "Observer": "warpzone.observers.observer",
    "RewardWeights": "warpzone.env.rewards",
    "RomError": "warpzone.rom",
    "RomMissingError": "warpzone.rom",
    "TrainConfig": "warpzone.config",
    "Trained": "warpzone.train.api",
    "Transition": "warpzone.collect.own_reward",
    "evaluate": "warpzone.eval.evaluation",
    "load_agent": "warpzone.eval.loaded",
}
#: Packages that load PyTorch.
_WITH_TORCH = tuple(f"warpzone.{name}" for name in ("collect", "eval", "observers", "train"))

_when_imported("gymnasium", _register)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        # Looked up in a file: once.
        globals()[name] = version("warpzone")
        return globals()[name]
    # The package `warpzone.train` can be called; it is the function as well.
    home = "warpzone.train" if name == "train" else _HOMES.get(name, "")
    if not home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if home.startswith(_WITH_TORCH):
        _require_torch()
        if name != "train":
            from warpzone.rom.waiting import load_torch

            load_torch()
    found = import_module(home)
    return found if name == "train" else getattr(found, name)


def _require_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise ImportError("agents need PyTorch; install it with: pip install 'warpzone[train]'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
