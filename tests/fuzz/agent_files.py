"""Weights of an agent for the fuzzer: packed or not, and with changes that leave the file itself
whole, so that they come as far as those who unpack."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Mapping
from typing import Any
from unittest import mock

from safetensors.torch import save
from torch import Tensor

from warpzone.run import packing

#: What the scale of a row can never be, what it may be, and what is on the border.
NUMBERS = (float("nan"), float("inf"), -float("inf"), -1.0, 3e38, 2.6e36, 1e-45, 0.0, -0.0)


class AgentFile:
    """A good file, and its parts."""

    def __init__(self, content: bytes) -> None:
        size = int.from_bytes(content[:8], "little")
        self.content = content
        self.header: dict[str, Any] = json.loads(content[8 : 8 + size])
        self.tensors = content[8 + size :]

    def headed(self, header: bytes) -> bytes:
        """With another header."""
        return len(header).to_bytes(8, "little") + header + self.tensors

    def twisted(self, draw: random.Random) -> bytes:
        """With another scale, or a tensor of another name or shape. The header stays true."""
        header = {name: dict(part) for name, part in self.header.items()}
        names = [name for name in header if name != "__metadata__"]
        scales = [name for name in names if name.endswith(packing.SCALES)]
        one, kind = draw.choice(names), draw.randrange(3)
        if kind == 0 and scales:
            first, last = header[draw.choice(scales)]["data_offsets"]
            at = draw.randrange(first, last, 4) + len(self.content) - len(self.tensors)
            number = struct.pack("<f", draw.choice(NUMBERS))
            return self.content[:at] + number + self.content[at + 4 :]
        if kind == 1:
            other = draw.choice(names).partition(":")[0]
            ending = draw.choice(("", packing.MATRIX, packing.SCALES))
            header[other + ending] = header.pop(one)
        else:
            shape = header[one]["shape"]
            header[one]["shape"] = draw.choice((shape[::-1], [1, *shape], [*shape, 1]))
        return self.headed(json.dumps(header).encode())


def agent_files(tensors: Mapping[str, Tensor]) -> list[AgentFile]:
    """As training writes them, and as they are shared."""
    with mock.patch.object(packing, "LEAST", 16):
        packed = packing.pack(tensors)
    notes = {"meta": json.dumps({"global_step": 7})}
    return [AgentFile(save(one, notes)) for one in (dict(tensors), packed)]
