"""Training: the main loop, its sessions, checkpoints and plans. The package itself can be called:
`warpzone.train(...)` is `warpzone.train.api.train`."""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """`warpzone.train` is this package and the function of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from warpzone.rom.waiting import hushed, load_torch

        with hushed(bool(kwargs.get("quiet"))):
            # Its optimisers load the second, which takes as long again.
            load_torch("torch._dynamo")
        from warpzone.train.api import train

        return train(*args, **kwargs)

    @property
    def __wrapped__(self) -> Any:
        """For `inspect.signature`."""
        from warpzone.train.api import train

        return train


sys.modules[__name__].__class__ = _Callable
