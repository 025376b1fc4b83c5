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
def test_the_whole_machine_is_equal(rom: bytes, native: _engine.NativeProgram, seed: int) -> None:
    interpreted, translated = _engine.Console(rom), _engine.Console(rom, native=native)
    for frame, mask in enumerate(buttons(seed, 4000)):
        interpreted.frame(mask)
        translated.frame(mask)
        assert interpreted.save() == translated.save(), f"frame {frame}"
    assert interpreted.registers() == translated.registers()
