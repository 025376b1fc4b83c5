"""Scripts that cannot be edited: their imports of gym-super-mario-bros lead here."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

#: Their module, and ours.
_OURS = {
    "gym_super_mario_bros": "warpzone.compat",
    "gym_super_mario_bros.actions": "warpzone.compat.actions",
    "nes_py.wrappers": "warpzone.compat.wrappers",
}


def take_over() -> None:
    """From now on `import gym_super_mario_bros`, its `actions` and `nes_py.wrappers` give modules
    of this package in this process, whether the real ones are installed or not."""
    if find_spec("nes_py") is None:
        # The parent of a module must be there before it can be imported.
        sys.modules["nes_py"] = ModuleType("nes_py")
    for theirs, ours in _OURS.items():
        sys.modules[theirs] = import_module(ours)
