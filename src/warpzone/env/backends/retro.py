"""stable-retro 1.0.1: FCEUmm, the emulator the native engine is compared with.

The core keeps its state in globals, so a process holds one of these. Its pictures lack eight pixels
at every edge; they are repeated from the outermost ones, so that the game stands where it does in
the pictures of the other back-ends.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from warpzone import _engine
from warpzone.env.actions import BUTTONS
from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.interface import RAM_SIZE, BackendError, Bytes
from warpzone.env.backends.rom_lock import rom_lock
from warpzone.env.options import SCREEN_HEIGHT, SCREEN_WIDTH

_GAME = "Warpzone-Nes"


def check() -> None:
    """Says what is missing, in one sentence."""
    if importlib.util.find_spec("stable_retro") is None:
        raise BackendError(
            "the back-end retro needs stable-retro, which is not installed; "
            "run: pip install 'warpzone[retro]'"
        )


@contextmanager
def _as_backend_error() -> Iterator[None]:
    """A game that does not get on is a failure of the back-end."""
    try:
        yield
    except RuntimeError as error:
        raise BackendError(str(error)) from error


def _write_integration(folder: Path, rom: bytes) -> None:
    """The files from which stable-retro knows a game; ours is the bare machine."""
    game = folder / _GAME
    game.mkdir()
    (game / "rom.nes").write_bytes(rom)
    (game / "rom.sha").write_text(hashlib.sha1(rom, usedforsecurity=False).hexdigest() + "\n")
    (game / "data.json").write_text(json.dumps({"info": {}}))
    (game / "scenario.json").write_text(json.dumps({"done": {}, "reward": {}}))
    (game / "metadata.json").write_text("{}")


class RetroMachine:
    """The one emulator of this process."""

    _alive = False

    def __init__(self, rom: str, log: Diagnostics) -> None:
        if RetroMachine._alive:
            raise BackendError("stable-retro holds one game in a process; use worker processes")
        import stable_retro

        with tempfile.TemporaryDirectory() as folder, rom_lock(log):
            log.mark("calling_mario_make")
            _write_integration(Path(folder), Path(rom).read_bytes())
            stable_retro.data.Integrations.add_custom_path(folder)
            self._env: Any = stable_retro.make(
                _GAME,
                state=stable_retro.State.NONE,
                inttype=stable_retro.data.Integrations.CUSTOM_ONLY,
                use_restricted_actions=stable_retro.Actions.ALL,
                render_mode="rgb_array",
            )
            log.mark("mario_make_done")
        RetroMachine._alive = True
        self._env.reset()
        self._power_on: bytes = self._env.em.get_state()
        self._starts: dict[int, bytes] = {}
        self._bits = [BUTTONS.get(name or "", 0) for name in self._env.buttons]

    def start(self, stage: int) -> None:
        """Goes back to the start of a stage; the first time it is played to."""
        if stage not in self._starts:
            self._load(self._power_on)
            with _as_backend_error():
                _engine.reach_start(self, stage)
            self._starts[stage] = self._env.em.get_state()
        self._load(self._starts[stage])

    def advance(self, buttons: int) -> None:
        """One frame with this button mask."""
        mask = np.array([bool(buttons & bit) for bit in self._bits], np.uint8)
        self._env.em.set_button_mask(mask, 0)
        self._env.em.step()
        self._env.data.update_ram()

    def ram(self) -> Bytes:
        """A copy of RAM."""
        return np.array(self._env.get_ram()[:RAM_SIZE], np.uint8)

    def poke(self, address: int, value: int) -> None:
        """Writes one byte of RAM."""
        self._env.data.memory.assign(address, "|u1", int(value))

    def skip_scenes(self, single_stage: bool) -> None:
        """As the engine does it."""
        with _as_backend_error():
            _engine.skip_scenes(self, single_stage)

    def screen(self) -> Bytes:
        """The picture with the edges the core cuts off."""
        picture = self._env.em.get_screen()
        rows, columns = SCREEN_HEIGHT - picture.shape[0], SCREEN_WIDTH - picture.shape[1]
        edges = ((rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2), (0, 0))
        return np.pad(picture, edges, mode="edge")

    def close(self) -> None:
        """Frees the emulator."""
        if RetroMachine._alive:
            self._env.close()
            RetroMachine._alive = False

    def _load(self, state: bytes) -> None:
        self._env.em.set_state(state)
        self._env.data.update_ram()
