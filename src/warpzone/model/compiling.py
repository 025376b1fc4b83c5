"""torch.compile, tried before it is relied on."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import torch

from warpzone.config import ConfigError
from warpzone.config.optimisation import OptimisationConfig

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], config: OptimisationConfig) -> Callable[P, R]:
    """`function`, compiled if the configuration asks for it."""
    if not config.compile:
        return function
    return cast(Callable[P, R], torch.compile(function))


def check_compiler(config: OptimisationConfig, device: torch.device) -> None:
    """Compiles a sum where the network runs. What it needs (a C++ compiler on the CPU, Triton on
    CUDA) may be missing, and that is better known now than in the middle of the first update."""
    if not config.compile:
        return
    try:
        double = torch.compile(_double)(torch.ones(2, device=device))
    except (RuntimeError, ImportError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"--compile: torch.compile does not work here ({reason})") from error
    if double.tolist() != [2.0, 2.0]:
        raise ConfigError("--compile: what torch.compile makes here computes wrong results")


def _double(x: torch.Tensor) -> torch.Tensor:
    return x + x
