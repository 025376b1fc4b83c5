"""nes-py 8.2.1 through gym-super-mario-bros 7.4.0, made usable under NumPy 2.

Both were written for NumPy 1, where a byte from RAM times 256 was a large integer; NumPy 2 keeps it
a byte and overflows. The repairs are applied to the imported classes: nothing on disk changes, and
nothing about the emulator does.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import warnings
from typing import Any

import numpy as np

from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.interface import WHOLE_GAME, BackendError, Bytes
from warpzone.env.backends.rom_lock import rom_lock

_PACKAGES = ("gym", "nes_py", "gym_super_mario_bros")
#: The longest scene (the end of a castle) takes about 2,000 frames.
MAX_SCENE_FRAMES = 20_000


def check() -> None:
    """Says what is missing, in one sentence."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise BackendError(
            f"the back-end nes-py needs {missing[0]}, which is not installed; "
            "run: pip install 'warpzone[compare]'"
        )


class _IntRam(np.ndarray[Any, np.dtype[np.uint8]]):
    """RAM whose single bytes are read as Python ints, as they behaved under NumPy 1."""

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        return int(value) if isinstance(value, np.integer) else value


def patch(log: Diagnostics) -> None:
    """Repairs what NumPy 2 broke. Doing it twice does no harm."""
    import nes_py.nes_env as nes_env
    from nes_py._rom import ROM

    log.mark("patch_start")
    ROM.prg_rom_size = property(lambda self: 16 * int(self.header[4]))
    ROM.chr_rom_size = property(lambda self: 8 * int(self.header[5]))
    log.mark("patch_uint8_ok")
    buffer = nes_env.NESEnv._ram_buffer
    if not getattr(buffer, "reads_ints", False):

        def ram_of_ints(self: Any) -> _IntRam:
            return buffer(self).view(_IntRam)  # type: ignore[no-any-return]

        ram_of_ints.reads_ints = True  # type: ignore[attr-defined]
        nes_env.NESEnv._ram_buffer = ram_of_ints
    log.mark("patch_ramdtype_ok")
    log.mark("patch_done")


def _import(log: Diagnostics) -> Any:
    log.mark("import_start_gsm")
    # gym prints that it is unmaintained whenever it is imported.
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        import gym.logger
        import gym_super_mario_bros.smb_env as smb_env

    gym.logger.set_level(gym.logger.ERROR)
    log.mark("import_done_gsm")
    patch(log)
    return smb_env


def _make(rom: str, stage: int, log: Diagnostics) -> Any:
    """gym-super-mario-bros' environment of one stage, with the ROM of our choice."""
    smb_env = _import(log)

    class Counted(smb_env.SuperMarioBrosEnv):  # type: ignore[misc,name-defined]
        """Its scenes and start screens loop until the game gets on; here they give up."""

        frames = 0

        def _frame_advance(self, action: int) -> None:
            self.frames += 1
            if self.frames > MAX_SCENE_FRAMES:
                raise BackendError(f"the game did not get on within {MAX_SCENE_FRAMES} frames")
            super()._frame_advance(action)

    target = None if stage == WHOLE_GAME else (stage // 4 + 1, stage % 4 + 1)
    packaged = smb_env.rom_path
    with rom_lock(log):
        log.mark("calling_mario_make")
        smb_env.rom_path = lambda *_: rom
        try:
            env = Counted(target=target)
        except (ValueError, OSError) as error:
            raise BackendError(f"nes-py cannot load the ROM: {error}") from error
        finally:
            smb_env.rom_path = packaged
        log.mark("mario_make_done")
    return env


class NesPyMachine:
    """One emulator for each stage that is played; a reset goes back to its backup."""

    def __init__(self, rom: str, log: Diagnostics, first: int = 0) -> None:
        self._rom = rom
        self._log = log
        self._envs: dict[int, Any] = {first: _make(rom, first, log)}
        self._env = self._envs[first]

    def start(self, stage: int) -> None:
        """Goes back to the start of a stage."""
        if stage not in self._envs:
            self._envs[stage] = _make(self._rom, stage, self._log)
        self._env = self._envs[stage]
        self._env.frames = 0
        self._env.reset()

    def advance(self, buttons: int) -> None:
        """One frame with this button mask."""
        self._env.frames = 0
        self._env._frame_advance(buttons)

    def ram(self) -> Bytes:
        """A view of the emulator's RAM."""
        return np.asarray(self._env.ram)

    def skip_scenes(self, single_stage: bool) -> None:
        """gym-super-mario-bros' own; it knows from its target whether it is a single stage."""
        self._env.frames = 0
        self._env._did_step(False)

    def screen(self) -> Bytes:
        """A view of the emulator's screen."""
        screen: Bytes = self._env.screen
        return screen

    def close(self) -> None:
        """Frees the emulators."""
        while self._envs:
            self._envs.popitem()[1].close()
