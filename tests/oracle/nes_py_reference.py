"""The real gym-super-mario-bros 7.4.0 and nes-py 8.2.1, made usable under NumPy 2.

Both were written for NumPy 1, where a byte from RAM times 256 was a large integer; NumPy 2 keeps
it a byte and overflows. The repairs are applied to the imported classes: a byte read from RAM or
from the ROM header becomes a Python int. Nothing about the emulator changes.

Import this only where both packages are installed; it raises ImportError elsewhere.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import gym_super_mario_bros.smb_env as smb_env
    import nes_py.nes_env as nes_env
    from nes_py._rom import ROM

Stage = tuple[int, int]

STAGES: tuple[Stage, ...] = tuple((world, stage) for world in range(1, 9) for stage in range(1, 5))


class _IntRam(np.ndarray[Any, np.dtype[np.uint8]]):
    """RAM whose single bytes are read as Python ints, as they behaved under NumPy 1."""

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        return int(value) if isinstance(value, np.integer) else value


def _ram_of_ints(self: Any) -> _IntRam:
    return _RAM_BUFFER(self).view(_IntRam)  # type: ignore[no-any-return]


_RAM_BUFFER = nes_env.NESEnv._ram_buffer
nes_env.NESEnv._ram_buffer = _ram_of_ints
ROM.prg_rom_size = property(lambda self: 16 * int(self.header[4]))
ROM.chr_rom_size = property(lambda self: 8 * int(self.header[5]))


class Emulator:
    """nes-py's bare emulator, switched on but with no step taken."""

    def __init__(self, rom: Path) -> None:
        self._env = nes_env.NESEnv(str(rom))
        self._env.reset()

    def step(self, buttons: int, buttons2: int = 0) -> None:
        self._env.controllers[1][:] = buttons2
        self._env._frame_advance(buttons)

    def reset(self) -> None:
        nes_env._LIB.Reset(self._env._env)

    def backup(self) -> None:
        self._env._backup()

    def restore(self) -> None:
        self._env._restore()

    def poke(self, address: int, value: int) -> None:
        self._env.ram[address] = value

    def ram(self) -> NDArray[np.uint8]:
        return np.array(self._env.ram, dtype=np.uint8)

    def screen(self) -> NDArray[np.uint8]:
        return np.array(self._env.screen, dtype=np.uint8)

    def close(self) -> None:
        self._env.close()


def make_env(stage: Stage | None, rom: Path | None = None) -> Any:
    """gym-super-mario-bros' environment of one stage, or of the whole game for None.

    Its actions are button masks. `rom` replaces the file that comes with the package.
    """
    if rom is None:
        return smb_env.SuperMarioBrosEnv(target=stage)
    packaged = smb_env.rom_path
    smb_env.rom_path = lambda *_: str(rom)
    try:
        return smb_env.SuperMarioBrosEnv(target=stage)
    finally:
        smb_env.rom_path = packaged
