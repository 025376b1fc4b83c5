"""Checks and look-ups between a caller's arguments and the engine."""

import os
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from warpzone import _engine
from warpzone.env.options import Native
from warpzone.media import window

ENGINE_AUTORESET = {
    AutoresetMode.NEXT_STEP: _engine.Autoreset.NEXT_STEP,
    AutoresetMode.SAME_STEP: _engine.Autoreset.SAME_STEP,
    AutoresetMode.DISABLED: _engine.Autoreset.DISABLED,
}


def count(name: str, value: int, limit: int) -> int:
    """A whole number in 1..limit."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if not 1 <= value <= limit:
        raise ValueError(f"{name} must be in 1..{limit}, not {value}")
    return int(value)


def threads(num_threads: int | None, num_lanes: int) -> int:
    """All cores this process may use unless told otherwise; never more than lanes."""
    if num_threads is None:
        num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
        num_threads = num_threads or os.cpu_count() or 1
    return min(count("num_threads", num_threads, 1024), num_lanes)


def batch_size(size: int | None, num_lanes: int) -> int:
    """Lanes that `recv` returns at once: all unless told otherwise."""
    return num_lanes if size is None else count("batch_size", size, num_lanes)


def autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Gymnasium's mode, also by its name or value."""
    if isinstance(mode, AutoresetMode):
        return mode
    for known in AutoresetMode:
        if mode in (known.value, known.name, known.name.lower()):
            return known
    names = ", ".join(known.name for known in AutoresetMode)
    raise ValueError(f"autoreset_mode must be one of {names}, not {mode!r}")


def render_mode(mode: str | None, known: list[str]) -> str | None:
    """None or one of the modes in the metadata."""
    if mode is not None and mode not in known:
        raise ValueError(f"render_mode must be None, {' or '.join(known)}, not {mode!r}")
    return mode


def possible_modes(known: list[str], chosen: str | None) -> list[str]:
    """Those that work on this machine and the chosen one: Gymnasium's checker tries all that an
    environment names."""
    return [mode for mode in known if mode in ("rgb_array", chosen) or window.is_possible()]


def reset_mask(options: dict[str, Any] | None, num_lanes: int) -> NDArray[np.bool_] | None:
    """`options["reset_mask"]`, checked as Gymnasium's own vector environments check it."""
    if not options:
        return None
    unknown = [key for key in options if key != "reset_mask"]
    if unknown:
        raise ValueError(f"unknown reset option {unknown[0]!r}; the only one is 'reset_mask'")
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError("options['reset_mask'] must be a NumPy array of bool")
    if mask.shape != (num_lanes,):
        raise ValueError(f"options['reset_mask'] must have shape ({num_lanes},), not {mask.shape}")
    if not mask.any():
        raise ValueError("options['reset_mask'] must name at least one lane")
    return np.ascontiguousarray(mask)


def action_ids(actions: Any, lanes: int) -> NDArray[np.int64]:
    """Action ids as the engine takes them; it checks their range."""
    ids = np.asarray(actions)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"actions must be whole numbers, and have dtype {ids.dtype}")
    if ids.shape != (lanes,):
        raise ValueError(f"actions must have shape ({lanes},), one for each lane, not {ids.shape}")
    return np.ascontiguousarray(ids, np.int64)


def lane_ids(lanes: Any, num_lanes: int) -> NDArray[np.int64]:
    """Lane ids as the engine takes them; it checks their range."""
    if lanes is None:
        return np.arange(num_lanes, dtype=np.int64)
    ids = np.asarray(lanes)
    if ids.dtype.kind not in "iu" or ids.ndim != 1:
        raise TypeError("lanes must be a list or one-dimensional array of whole numbers")
    return np.ascontiguousarray(ids, np.int64)


def rom_image(rom: str | bytes | os.PathLike[str] | None) -> bytes:
    """The ROM's bytes: given, from a file, by name, or the installed one; checked."""
    from warpzone import rom as roms

    return roms.find(rom)


def native_program(image: bytes, native: Native, timing: str) -> "_engine.NativeProgram | None":
    """Translated code of a ROM, when wanted and possible."""
    if native not in (True, False, "auto", "emitted"):
        raise ValueError(f"native must be True, False, 'auto' or 'emitted', not {native!r}")
    if native is False or timing != "vblank":
        if native in (True, "emitted"):
            raise ValueError(
                f"native={native!r} cannot be had with timing={timing!r}; it is interpreted"
            )
        return None
    from warpzone.rom import native as translator

    if native == "emitted":
        return translator.emit(image)
    return translator.prepare(image) if native is True else translator.load(image)
