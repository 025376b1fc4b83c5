"""Translated code and interpreter: the same machine, byte for byte, after every frame."""

import random

import pytest

from warpzone import _engine

START, RIGHT, LEFT = 8, 128, 64


def buttons(seed: int, frames: int) -> list[int]:
    """Presses START through the title, then runs right with random jumps and turns."""
    rng = random.Random(seed)
    masks = [START if frame // 8 % 2 else 0 for frame in range(200)]
    while len(masks) < frames:
        masks += [rng.choice([RIGHT, RIGHT, RIGHT, LEFT]) | rng.randrange(4)] * rng.randrange(4, 20)
    return masks[:frames]


@pytest.mark.parametrize("seed", range(3))
def test_the_whole_machine_is_equal(
    rom: bytes, translated: _engine.NativeProgram, seed: int
) -> None:
    slow, fast = _engine.Console(rom), _engine.Console(rom, native=translated)
    for frame, mask in enumerate(buttons(seed, 4000)):
        slow.frame(mask)
        fast.frame(mask)
        assert slow.save() == fast.save(), f"frame {frame}"
    assert slow.registers() == fast.registers()


def test_a_game_changes_hands(
    rom: bytes, native: _engine.NativeProgram, emitted: _engine.NativeProgram
) -> None:
    """Saved by one and restored by the next, in the middle of anything."""
    rng = random.Random(5)
    expected = _engine.Console(rom)
    consoles = [_engine.Console(rom, native=code) for code in (None, native, emitted)]
    state = expected.save()
    masks = buttons(9, 3000)
    at = 0
    while at < len(masks):
        part = bytes(masks[at : at + rng.randrange(1, 40)])
        console = rng.choice(consoles)
        console.load(state)
        console.frames(part)
        state = console.save()
        expected.frames(part)
        assert state == expected.save(), f"frame {at}"
        at += len(part)


def test_every_stage_starts_the_same(rom: bytes, emitted: _engine.NativeProgram) -> None:
    for stage in range(32):
        slow, fast = _engine.Console(rom), _engine.Console(rom, native=emitted)
        masks = bytes(buttons(stage, 500)[200:])
        for console in (slow, fast):
            console.start_stage(stage)
            console.frames(masks)
        assert slow.save() == fast.save(), f"stage {stage}"
