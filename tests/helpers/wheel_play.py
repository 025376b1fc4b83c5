"""What wheels are tried with: a short game whose pictures are compared, and pieces of the ROM that
must be in none of them."""

import hashlib

import numpy as np

import warpzone
from warpzone import rom as roms

#: Plays and prints a hash of what was seen, and the instruction sets in use.
PLAY = """
import hashlib, numpy as np, warpzone
from warpzone import _engine
env = warpzone.MarioVectorEnv(2, stages="1-1", num_threads=1)
obs, _ = env.reset(seed=0)
for _ in range(12):
    obs, *_ = env.step(np.full(2, 1))
print(hashlib.sha256(obs.tobytes()).hexdigest(), *_engine.SIMD_LEVELS)
"""


def seen_here() -> str:
    """The hash that PLAY prints, by this process and its translated code."""
    env = warpzone.MarioVectorEnv(2, stages="1-1", num_threads=1)
    obs, _ = env.reset(seed=0)
    for _ in range(12):
        obs, *_ = env.step(np.full(2, 1))
    env.close()
    return hashlib.sha256(obs.tobytes()).hexdigest()


def rom_pieces(variant: str) -> list[bytes]:
    """Parts of program and pictures of a ROM."""
    game = roms.load_stored(variant).data
    return [game[at : at + 48] for at in (64, 5000, 16400, 30000, 33000, 40000)]
