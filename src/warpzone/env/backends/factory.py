"""`module:factory`: any Gymnasium environment of the game, found, made and understood."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from warpzone.env.actions import BUTTONS, action_table, mask_name
from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.interface import (
    RAM_SIZE,
    BackendError,
    BackendSpec,
    Bytes,
    RamX,
)
from warpzone.env.backends.rom_lock import rom_lock
from warpzone.env.backends.stage_warning import only_first_stage
from warpzone.env.outside import Code, OutsideError, locate, nowhere
from warpzone.env.stages import stage_name

_X_NAMES = ("mario_x", "x_pos")
_MASKS = 256


def agree(backend: str) -> None:
    """The user names it: its code may run, as it is now."""
    _code(backend).remember()


def digest(backend: str) -> str:
    """Of the file that may run. BackendError if it may not."""
    code = _code(backend)
    _allow(code, "")
    return code.digest


def find(backend: str, agreed: str = "") -> Callable[..., Any]:
    """The callable behind `module:factory`. A file of the current folder must have been agreed to,
    here or by whoever gave its digest."""
    code = _code(backend)
    _allow(code, agreed)
    try:
        found = code.load()
    except OutsideError as error:
        raise BackendError(str(error)) from error
    if not callable(found):
        raise BackendError(f"the back-end {backend} is not a function that makes an environment")
    made: Callable[..., Any] = found
    return made


def _code(backend: str) -> Code:
    try:
        code = locate("backend", backend)
    except OutsideError as error:
        raise BackendError(str(error)) from error
    if code is None:
        raise BackendError(f"the back-end {backend} cannot be imported: {nowhere(backend)}")
    return code


def _allow(code: Code, agreed: str) -> None:
    try:
        if code.digest != agreed:
            code.check(agreed)
    except OutsideError as error:
        raise BackendError(str(error)) from error


def accepted(factory: Callable[..., Any]) -> set[str]:
    """Names of the arguments a factory takes; only those it names are given to it."""
    try:
        return set(inspect.signature(factory).parameters)
    except ValueError:
        return set()


def check_stages(spec: BackendSpec) -> None:
    """Says once, before anything is made, that a factory does not know the stages asked for."""
    if "stage" not in accepted(find(spec.backend, spec.digest)):
        only_first_stage(spec.backend, spec.stages)


def make(spec: BackendSpec, stage: int, log: Diagnostics) -> Any:
    """One environment, with what its factory wants to know of ours."""
    factory = find(spec.backend, spec.digest)
    names = accepted(factory)
    offered = {
        "stage": "game" if stage < 0 else stage_name(stage),
        "actions": list(action_table(spec.options.actions).names),
        "rom": spec.rom,
    }
    with rom_lock(log):
        log.mark("calling_mario_make")
        env = factory(**{name: value for name, value in offered.items() if name in names})
        log.mark("mario_make_done")
    for name in ("reset", "step", "close", "action_space"):
        if not hasattr(env, name):
            raise BackendError(f"what {spec.backend} makes has no {name!r}: it is no environment")
    return env


def presser(env: Any, spec: BackendSpec) -> Callable[[int], Any]:
    """From a button mask to the action the environment takes."""
    masks = action_table(spec.options.actions).masks
    space = env.action_space
    if isinstance(space, spaces.Discrete) and int(space.n) == _MASKS:
        return lambda mask: mask
    if isinstance(space, spaces.Discrete) and int(space.n) == len(masks):
        return lambda mask: _action_of(masks, mask)
    names = getattr(getattr(env, "unwrapped", env), "buttons", None)
    if isinstance(space, spaces.MultiBinary) and names is not None:
        bits = [BUTTONS.get(name or "", 0) for name in names]
        return lambda mask: np.array([bool(mask & bit) for bit in bits], np.int8)
    raise BackendError(
        f"{spec.backend} takes {space}, but --actions has {len(masks)} actions; choose a set of "
        "the same size, or an environment that takes button masks (Discrete(256))"
    )


def _action_of(masks: bytes, mask: int) -> int:
    if mask not in masks:
        raise BackendError(f"a script presses {mask_name(mask)}, which is none of the actions")
    return masks.index(mask)


def picture_of(observation: Any, backend: str) -> Bytes:
    """The observation as a gray or RGB screen of bytes."""
    image = np.asarray(observation)
    if image.ndim == 3 and image.shape[-1] == 1:
        image = image[..., 0]
    if image.ndim != 2 and not (image.ndim == 3 and image.shape[-1] == 3):
        raise BackendError(
            f"{backend} observes arrays of shape {image.shape}; height x width, with 1 or 3 "
            "channels last, are understood"
        )
    if image.dtype == np.uint8:
        return np.asarray(image, np.uint8)
    if image.dtype.kind == "f":
        scaled: Bytes = (np.clip(image, 0.0, 1.0) * 255).round().astype(np.uint8)
        return scaled
    raise BackendError(
        f"{backend} observes {image.dtype}; uint8, or floats in 0..1, are understood"
    )


def x_of(info: Mapping[str, Any], env: Any, ram_x: RamX) -> int | None:
    """Mario's x: from `info["metrics"]`, from `info`, or from RAM where that is allowed."""
    metrics = info.get("metrics")
    for source in (metrics, info):
        if isinstance(source, Mapping):
            for name in _X_NAMES:
                if source.get(name) is not None:
                    return int(source[name])
    if not ram_x.enabled:
        return None
    ram = ram_of(env, info)
    if ram is None or max(ram_x.high, ram_x.low) >= len(ram):
        return None
    return int(ram[ram_x.high]) * 0x100 + int(ram[ram_x.low])


def ram_of(env: Any, info: Mapping[str, Any] | None = None) -> Bytes | None:
    """The environment's RAM, wherever it keeps it; None if nowhere."""
    inner = getattr(env, "unwrapped", env)
    found = (info or {}).get("ram")
    if found is None:
        found = getattr(inner, "ram", None)
    if found is None and callable(getattr(inner, "get_ram", None)):
        found = inner.get_ram()
    if found is None or callable(found):
        return None
    return np.asarray(found).astype(np.uint8).reshape(-1)[:RAM_SIZE]
