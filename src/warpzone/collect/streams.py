"""Derives independent seeds for all random streams from the run's seed."""

from __future__ import annotations

import numpy as np
import torch

#: Random streams, besides the lanes, which have seeds of their own.
STREAMS = ("weights", "actions", "order", "noise", "replay", "augment")


def stream_seed(seed: int, stream: str) -> int:
    """The seed of one stream; streams of one run do not repeat each other."""
    words = np.random.SeedSequence((seed, STREAMS.index(stream))).generate_state(1, np.uint64)
    # Generators take 64 bits with a sign.
    return int(words[0] >> np.uint64(1))


def generator(seed: int, stream: str) -> torch.Generator:
    """A generator on the CPU: what it draws depends on nothing but the seed."""
    return torch.Generator().manual_seed(stream_seed(seed, stream))
