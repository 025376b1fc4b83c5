"""Whether weights are those of a network, before memory is taken for it: a description of a few
bytes may be that of a network of terabytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from warpzone.model.agent import Agent
from warpzone.model.spec import ModelSpec

Shapes = Mapping[str, tuple[int, ...]]
#: What draws the numbers of a tensor, below the functions of `torch.nn.init`.
FILLING = (torch.Tensor.normal_, torch.Tensor.uniform_)


def fits(spec: ModelSpec, shapes: Shapes) -> bool:
    """Whether a network has tensors of these names and shapes, and no others."""
    sides = [spec.planes, spec.scaled_features, spec.flattened, *spec.scaled_channels]
    layers = spec.blocks if spec.encoder == "impala" else 0
    if spec.memory != "none":
        sides.append(spec.memory_size)
        layers = max(layers, spec.memory_layers if spec.memory == "gtrxl" else 0)
    # All of them are sides of some tensor, and each layer has one: nothing below is larger than
    # what there is.
    largest = max((side for shape in shapes.values() for side in shape), default=0)
    if max(sides) > largest or layers > len(shapes):
        return False
    return shapes_of(spec) == dict(shapes)


class Unfilled(TorchFunctionMode):
    """Leaves tensors as they are made. Random numbers for tensors without memory are worked out in
    Python by parts of PyTorch that take seconds to import."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if func in FILLING or getattr(func, "__module__", "") == "torch.nn.init":
            return given["tensor"] if "tensor" in given else args[0]
        return func(*args, **given)


@lru_cache(16)
def shapes_of(spec: ModelSpec) -> Shapes:
    """The tensors of a network, which takes no memory for them."""
    with torch.device("meta"), Unfilled():
        agent = Agent(dataclasses.replace(spec, memory_length=1))
    return {name: tuple(value.shape) for name, value in agent.state_dict().items()}
