"""Bytes as tensors, which is how files hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor


def pack(parts: Sequence[bytes]) -> dict[str, Tensor]:
    """One tensor of all the bytes, and their sizes."""
    joined = bytearray(b"".join(parts))
    # A tensor cannot be made from an empty buffer.
    whole = torch.frombuffer(joined, dtype=torch.uint8) if joined else torch.zeros(0).byte()
    return {"bytes": whole, "sizes": torch.tensor([len(part) for part in parts]).long()}


def unpack(packed: Mapping[str, Tensor]) -> list[bytes]:
    """The bytes again; ValueError if sizes and bytes do not fit."""
    whole, sizes = packed["bytes"].numpy().tobytes(), packed["sizes"].tolist()
    if min(sizes, default=0) < 0 or sum(sizes) != len(whole):
        raise ValueError("the saved lanes are damaged")
    return [whole[start:end] for start, end in pairwise([0, *accumulate(sizes)])]
