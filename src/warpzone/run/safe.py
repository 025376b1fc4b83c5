"""Reads weights and state from untrusted files: sizes are compared with the file before anything
is allocated, nothing is executed, and every defect is one sentence."""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import struct
import zipfile
from collections.abc import Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from warpzone.run.opening import open_file
from warpzone.run.sidecar import CheckpointError

# PyTorch is loaded when tensors are: whoever looks for a run need not wait for it.
if TYPE_CHECKING:
    from torch import Tensor

#: The header of the largest network here is a few KiB.
MOST_HEADER = 8 << 20
#: The part of a state file that says what its tensors are.
MOST_PICKLE = 64 << 20
MOST_PARTS = 100_000
MOST_DEPTH = 20
#: torch.compile wraps a network and puts this before its names.
COMPILED = "_orig_mod."
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1}
SIZES |= {"BOOL": 1}
#: Globals that a state file may use. PyTorch allows more, some of which allocate memory.
STORAGES = ("Bool", "Byte", "Char", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double")
NAMES = {"torch._utils _rebuild_tensor_v2", "collections OrderedDict"}
NAMES |= {f"torch {kind}Storage" for kind in STORAGES}


def plain_name(name: str) -> str:
    """A tensor's name without what torch.compile adds."""
    return name.replace(COMPILED, "")


def read_header(path: Path) -> tuple[dict[str, list[int]], dict[str, str]]:
    """Shapes and text of a safetensors file, from its header alone."""
    with open_file(path.parent, path.name) as file:
        return _read_header(path, file)


def _read_header(path: Path, file: BufferedReader) -> tuple[dict[str, list[int]], dict[str, str]]:
    size = os.fstat(file.fileno()).st_size
    first = file.read(8)
    if len(first) < 8:
        raise CheckpointError(f"{path.name} is truncated")
    (length,) = struct.unpack("<Q", first)
    if length > min(MOST_HEADER, size - 8):
        raise CheckpointError(
            f"{path.name} claims a header of {length:,} bytes in a file of {size:,}"
        )
    text = file.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path.name} has a header that is not JSON") from error
    if not isinstance(header, dict):
        raise CheckpointError(f"{path.name} has a header that is not an object")
    meta = header.pop("__metadata__", {})
    if not isinstance(meta, dict) or not all(isinstance(value, str) for value in meta.values()):
        raise CheckpointError(f"{path.name} has notes that are not text")
    end = max((_tensor_end(path, name, part) for name, part in header.items()), default=0)
    if 8 + length + end != size:
        raise CheckpointError(
            f"{path.name} has {size:,} bytes, and its header describes {8 + length + end:,}"
        )
    return {name: part["shape"] for name, part in header.items()}, meta


def read_weights(path: Path, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights for a network whose own are `expected`: the same names and shapes, and floats. The
    file is checked and loaded through one descriptor."""
    with open_file(path.parent, path.name) as file:
        return _read_weights(path, file, expected)


def _read_weights(
    path: Path, file: BufferedReader, expected: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    from safetensors.torch import load

    shapes, _ = _read_header(path, file)
    names = {plain_name(name): name for name in shapes}
    if names.keys() != expected.keys() or len(names) != len(shapes):
        other = sorted(names.keys() ^ expected.keys())
        raise CheckpointError(f"{path.name} belongs to another network ({', '.join(other[:3])})")
    for name, tensor in expected.items():
        if shapes[names[name]] != list(tensor.shape):
            raise CheckpointError(
                f"{path.name} belongs to another network: {name} has the shape "
                f"{shapes[names[name]]}, not {list(tensor.shape)}"
            )
    file.seek(0)
    try:
        # As much as there was when the header was compared with it.
        loaded = load(file.read(os.fstat(file.fileno()).st_size))
    except (SafetensorError, ValueError, OSError) as error:
        raise CheckpointError(f"{path.name} cannot be read: {error}") from error
    return {plain_name(name): tensor for name, tensor in loaded.items()}


def read_state(path: Path) -> dict[str, Any]:
    """A state file: tensors, numbers, text, and lists and dictionaries of them. Never unpickles.
    The file is checked and loaded through one descriptor."""
    try:
        with open_file(path.parent, path.name) as file:
            return _read_state(path, file)
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {error.strerror}") from error


def _read_state(path: Path, file: BufferedReader) -> dict[str, Any]:
    import torch

    size = os.fstat(file.fileno()).st_size
    try:
        with zipfile.ZipFile(file) as archive:
            _look_at_parts(path, archive, size)
    except CheckpointError:
        raise
    except (zipfile.BadZipFile, OSError, EOFError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path.name} is truncated or not a state file") from error
    file.seek(0)
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{path.name} contains forbidden types") from error
    except (EOFError, AttributeError, IndexError, OSError, MemoryError, RecursionError) as error:
        raise CheckpointError(f"{path.name} is damaged") from error
    _look_through(path, state, size, MOST_DEPTH, set())
    if not isinstance(state, dict):
        raise CheckpointError(f"{path.name} is not a state file")
    return state


def _look_at_parts(path: Path, archive: zipfile.ZipFile, size: int) -> None:
    """Refuses an archive that claims more data than its size, and pickles that use anything but
    tensors."""
    parts = archive.infolist()
    if len(parts) > MOST_PARTS:
        raise CheckpointError(f"{path.name} has {len(parts):,} parts")
    for part in parts:
        # Both sizes: memory for what is said to be packed is taken before it is read.
        stored = part.compress_type == zipfile.ZIP_STORED and part.compress_size == part.file_size
        if not stored or part.file_size > size:
            raise CheckpointError(f"{path.name} claims more data than its size")
    if sum(part.file_size for part in parts) > size:
        raise CheckpointError(f"{path.name} claims more data than its size")
    for part in parts:
        # PyTorch's reader ignores case.
        if not part.filename.lower().endswith(".pkl"):
            continue
        if part.file_size > MOST_PICKLE:
            raise CheckpointError(f"{path.name} has a description of {part.file_size:,} bytes")
        try:
            asked = set(_names(archive.read(part)))
        except ValueError as error:
            raise CheckpointError(f"{path.name} is damaged") from error
        if more := sorted(asked - NAMES):
            raise CheckpointError(f"{path.name} contains forbidden types ({more[0][:60]!r})")


def _names(description: bytes) -> Iterator[str]:
    """Globals that a pickle uses. A name that is computed while reading is reported by its
    opcode."""
    for code, value, _ in pickletools.genops(description):
        if code.name in ("GLOBAL", "INST"):
            yield str(value)
        elif code.name in ("STACK_GLOBAL", "EXT1", "EXT2", "EXT4"):
            yield code.name


def _tensor_end(path: Path, name: str, part: Any) -> int:
    """Where a tensor ends, if its entry in the header is consistent."""
    damaged = CheckpointError(f"{path.name} has an inconsistent header")
    if not isinstance(part, dict):
        raise damaged
    shape, offsets, kind = part.get("shape"), part.get("data_offsets"), part.get("dtype")
    if not (isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2):
        raise damaged
    if not all(type(number) is int and number >= 0 for number in (*shape, *offsets)):
        raise damaged
    numbers = 1
    for side in shape:
        numbers *= side
        if numbers > 1 << 48:
            raise damaged
    if not isinstance(kind, str) or kind not in SIZES:
        raise damaged
    if offsets[1] - offsets[0] != numbers * SIZES[kind]:
        raise damaged
    return int(offsets[1])


def _look_through(path: Path, value: Any, size: int, depth: int, seen: set[int]) -> None:
    """Refuses tensors that are larger than the file they come from (repeated by a stride of 0,
    say), and everything that is neither a tensor nor plain. Shared values are checked once: a
    small file can hold a list of lists of lists of the same list."""
    import torch

    if depth == 0:
        raise CheckpointError(f"{path.name} is nested too deeply")
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.numel() * value.element_size() > size:
            raise CheckpointError(f"{path.name} has a tensor that is larger than the file")
    elif isinstance(value, dict | list | tuple):
        if id(value) in seen:
            return
        seen.add(id(value))
        parts = (*value.keys(), *value.values()) if isinstance(value, dict) else value
        for part in parts:
            _look_through(path, part, size, depth - 1, seen)
    elif not isinstance(value, str | int | float | bool | None):
        raise CheckpointError(f"{path.name} holds a {type(value).__name__}")
