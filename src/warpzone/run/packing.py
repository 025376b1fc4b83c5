"""Weights of agents as files keep them: large matrices in 8 bits, other tensors in half precision.
A matrix `NAME` is then `NAME:int8`, with whole numbers from -127 to 127, and `NAME:scale`, with one
number for each row; their product is the matrix. The names alone tell such files from others.
Why: docs/decisions/2026-11-16-packing.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from warpzone.run.safe import plain_name
from warpzone.run.sidecar import CheckpointError

# PyTorch is loaded when tensors are: whoever looks for a run need not wait for it.
if TYPE_CHECKING:
    from torch import Tensor

MATRIX, SCALES = ":int8", ":scale"
#: The largest of the whole numbers. -128 is not used: both signs reach equally far.
MOST = 127
#: Matrices from this size on, in bytes of half precision, are kept in 8 bits. What is smaller is
#: not worth the error.
LEAST = 4 << 20


def pack(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights as a file keeps them, in the order of their names; what is packed already stays as it
    is. ValueError for numbers that do not go into it."""
    found: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if name.endswith((MATRIX, SCALES)) or not value.is_floating_point():
            found[name] = value.contiguous()
        elif value.ndim == 2 and 2 * value.numel() >= LEAST:
            found[name + MATRIX], found[name + SCALES] = _in_8_bits(value)
        else:
            found[name] = value.half().contiguous()
    for name, value in found.items():
        if not bool(value.isfinite().all()):
            raise ValueError(f"{name} has numbers that half precision cannot hold")
    # In order, so that the same weights give the same file.
    return dict(sorted(found.items()))


def _in_8_bits(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers and the scale of each row. No sums: every machine gets the same ones."""
    import torch

    scales = matrix.float().abs().amax(1) / MOST
    # A row of zeros has no scale to divide by.
    divided = matrix.float() / torch.where(scales > 0, scales, 1.0)[:, None]
    return divided.round().clamp(-MOST, MOST).to(torch.int8), scales


def read_packed(content: bytes) -> dict[str, Tensor]:
    """The weights of an agent's file, by their names in its network; every reader of agents comes
    here. Files with and without packed matrices are taken. CheckpointError if it is damaged."""
    from safetensors.torch import load

    try:
        return unpack(load(content))
    except SafetensorError as error:
        raise CheckpointError(str(error)) from error


def unpack(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of a file with its matrices in single precision; others are as they are."""
    found: dict[str, Tensor] = {}
    for name, value in stored.items():
        whole, known = value, name
        if name.endswith(SCALES):
            if name.removesuffix(SCALES) + MATRIX not in stored:
                raise CheckpointError(f"{_shown(name)} are scales without a matrix")
            continue
        if name.endswith(MATRIX):
            known = name.removesuffix(MATRIX)
            whole = _matrix(name, value, stored.get(known + SCALES))
        known = plain_name(known)
        if known in found:
            raise CheckpointError(f"it has two tensors for {_shown(known)}")
        found[known] = whole
    return found


def _matrix(name: str, matrix: Tensor, scales: Tensor | None) -> Tensor:
    import torch

    if scales is None:
        raise CheckpointError(f"{_shown(name)} is a matrix without scales")
    if matrix.dtype != torch.int8 or scales.dtype != torch.float32:
        raise CheckpointError(f"{_shown(name)} has other numbers than a matrix in 8 bits")
    if matrix.ndim != 2 or scales.shape != matrix.shape[:1]:
        raise CheckpointError(f"{_shown(name)} does not have one scale for each row")
    # The product of the largest must be a number too; -128 is what 8 bits can hold.
    if not bool(((scales >= 0) & (scales * 128).isfinite()).all()):
        raise CheckpointError(f"{_shown(name)} has a scale that no row can have")
    return matrix.float().mul_(scales[:, None])


def _shown(name: str) -> str:
    """A name out of a file from anywhere, for a sentence."""
    return repr(name[:80])


def summary(stored: Mapping[str, Tensor]) -> dict[str, Any]:
    """Parameters and precision of a file's tensors, for descriptions."""
    import torch

    weights = {name: value for name, value in stored.items() if not name.endswith(SCALES)}
    kinds = {value.dtype for value in weights.values()}
    precision = "half" if kinds == {torch.float16} else "single"
    if any(name.endswith(MATRIX) for name in weights):
        precision = "mixed"
    return {
        "parameters": sum(value.numel() for value in weights.values()),
        "precision": precision,
    }
