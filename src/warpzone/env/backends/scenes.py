"""Starting stages and skipping scenes on any machine, exactly as the engine does it: the same pokes
and the same frames in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from warpzone.env.backends import signals
from warpzone.env.backends.interface import WHOLE_GAME, BackendError, Bytes

START_BUTTON = 0x08
#: The longest scene (the end of a castle) takes about 2,000 frames.
MAX_FRAMES = 20_000
#: These worlds count the walk into the first pipe as an area of its own.
_ENTRY_SCENE = (0, 1, 3, 6)


class Pokeable(Protocol):
    """The part of a machine that is needed here."""

    def advance(self, buttons: int) -> None: ...
    def ram(self) -> Bytes: ...
    def poke(self, address: int, value: int) -> None: ...


def reach_start(machine: Pokeable, stage: int) -> None:
    """From power-on to the first moment of a stage."""
    advance = _counted(machine, "start")
    advance(START_BUTTON)
    advance(0)
    while not _clock_runs(machine):
        advance(START_BUTTON)
        if stage != WHOLE_GAME:
            _write_stage(machine, stage)
        advance(0)
        machine.poke(signals.PRELEVEL_TIMER, 0)
    last = _time(machine)
    while _time(machine) >= last:
        last = _time(machine)
        advance(START_BUTTON)
        advance(0)


def skip_scenes(machine: Pokeable, single_stage: bool) -> None:
    """Called after every frame that did not end the episode."""
    advance = _counted(machine, "leave a scene")
    if _byte(machine, signals.PLAYER_STATE) == signals.DYING or (
        _byte(machine, signals.PLAYER_Y_HIGH) > 1
    ):
        machine.poke(signals.PLAYER_STATE, signals.DEAD)
        advance(0)
    if not single_stage and _world_over(machine):
        time = _time(machine)
        while _time(machine) == time:
            advance(0)
    if 1 < _byte(machine, signals.CHANGE_AREA_TIMER) < 255:
        machine.poke(signals.CHANGE_AREA_TIMER, 1)
    while _busy(machine) or _world_over(machine):
        machine.poke(signals.PRELEVEL_TIMER, 0)
        advance(0)


def _counted(machine: Pokeable, what: str) -> Callable[[int], None]:
    """`advance`, but not for ever: a game that never gets on is an error."""
    frames = 0

    def advance(buttons: int) -> None:
        nonlocal frames
        frames += 1
        if frames > MAX_FRAMES:
            raise BackendError(f"the game did not {what} within {MAX_FRAMES} frames")
        machine.advance(buttons)

    return advance


def _write_stage(machine: Pokeable, stage: int) -> None:
    world, level = divmod(stage, 4)
    machine.poke(signals.WORLD, world)
    machine.poke(signals.STAGE, level)
    machine.poke(signals.AREA, level + (world in _ENTRY_SCENE and level >= 1))


def _byte(machine: Pokeable, address: int) -> int:
    return int(machine.ram()[address])


def _time(machine: Pokeable) -> int:
    return int(signals.game_time(np.asarray(machine.ram())[None])[0])


def _clock_runs(machine: Pokeable) -> bool:
    """Until the game has cleared RAM after power-on, the clock's digits are not digits."""
    return _byte(machine, signals.TIME) <= 9 and _time(machine) != 0


def _world_over(machine: Pokeable) -> bool:
    return _byte(machine, signals.GAME_MODE) == signals.WORLD_OVER


def _busy(machine: Pokeable) -> bool:
    state = _byte(machine, signals.PLAYER_STATE)
    return state <= 0x05 or state == 0x07
