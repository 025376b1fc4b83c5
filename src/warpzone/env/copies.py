"""Copies of environments that play on: `copy.deepcopy`, `pickle`, worker processes.

An environment is carried as its arguments, what it was told between steps, and its saved lanes. A
ROM that is installed, or a file, stays behind; it is found again by its name and checked by its
hash.
"""

import hashlib
import os
from collections.abc import Hashable
from typing import Any

import numpy as np

from warpzone import _engine
from warpzone import rom as roms

Rom = str | bytes | os.PathLike[str] | None

#: Attributes that the constructor makes anew: the engine, and memory shared with it or the screen.
_MADE_ANEW = (
    *("_engine", "_process", "_pool", "_batch_pool", "_infos", "_batch_infos", "_final"),
    *("_window", "_image", "native", "observation_space"),
)


class Copies:
    """The part of `MarioVectorEnv` that copies it."""

    num_envs: int
    _image: bytes
    #: The arguments of the constructor, `rom` as it was given.
    _arguments: dict[str, Any]
    #: What the environment was told and the engine does not give back: method, arguments, options.
    _told: dict[Hashable, tuple[str, tuple[Any, ...], dict[str, Any]]]
    _started: bool

    def _live(self) -> "_engine.Vector":
        raise AssertionError("given by the environment")

    def _construct(self, arguments: dict[str, Any]) -> None:
        raise AssertionError("given by the environment")

    def _keep(self, key: Hashable, method: str, *arguments: Any, **options: Any) -> None:
        """Remembers a call for copies; it replaces an earlier one with the same key."""
        self._told.pop(key, None)
        self._told[key] = (method, arguments, options)

    def _drop(self, key: Hashable) -> None:
        self._told.pop(key, None)

    def __getstate__(self) -> dict[str, Any]:
        engine = self._live()
        state = {name: value for name, value in vars(self).items() if name not in _MADE_ANEW}
        lanes = range(self.num_envs) if self._started else ()
        state["_arguments"] = {
            **self._arguments,
            "rom": _rom_reference(self._arguments["rom"], self._image),
        }
        state["rom_sha256"] = hashlib.sha256(self._image).hexdigest()
        state["saved_lanes"] = [engine.save(lane) for lane in lanes]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        kept = dict(state)
        expected, saved, told = (kept.pop(name) for name in ("rom_sha256", "saved_lanes", "_told"))
        self._construct(kept["_arguments"])
        if hashlib.sha256(self._image).hexdigest() != expected:
            raise ValueError("the environment was copied with another ROM than the one found here")
        vars(self).update(kept)
        for method, arguments, options in told.values():
            getattr(self, method)(*arguments, **options)
        if saved:
            engine = self._live()
            # Lanes can be asked for anything once they were reset; then all of it is replaced.
            info = np.zeros((self.num_envs, len(_engine.INFO_FIELDS)), np.int32)
            engine.reset(None, np.empty((self.num_envs, *engine.obs_shape), np.uint8), info)
            for lane, lane_state in enumerate(saved):
                engine.load(lane, lane_state)


def _rom_reference(rom: Rom, image: bytes) -> Rom:
    """What finds this ROM again, in this process or another: its name if it is installed, its
    file, or, if it came as bytes and is nowhere, the bytes."""
    variant = roms.identify(image, None).variant
    if variant in roms.installed() and roms.load_stored(variant).data == image:
        return variant
    return image if isinstance(rom, bytes) or rom is None else os.fspath(rom)
