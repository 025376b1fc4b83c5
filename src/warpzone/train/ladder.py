"""Reduces a run step by step when memory runs out."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from warpzone.config import ConfigError, TrainConfig

#: What may be raised where memory runs out; `out_of_memory` tells.
MEMORY_ERRORS = (RuntimeError, MemoryError, OSError, ImportError)
#: What they say then. Allocators of libraries have no exception class of their own, a thread needs
#: a stack, and a library that is loaded late a place.
_WORDS = (
    "can't allocate memory",
    "not enough memory",
    "Cannot allocate memory",
    "cannot allocate memory",
    "bad_alloc",
    "can't start new thread",
    "failed to map segment",
)
#: All that oneDNN says.
_PRIMITIVES = (
    "could not create a primitive",
    "could not execute a primitive",
    "could not create a memory object",
)
#: Lower bounds.
LEAST_MINIBATCH = 32
LEAST_ROLLOUT = 16
LEAST_LANES = 8


def out_of_memory(error: BaseException) -> bool:
    """Whether an error means that GPU or host memory ran out, or came of one that did: without
    memory the clearing up fails as well."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, torch.OutOfMemoryError | MemoryError):
            return True
        text = str(seen).strip()
        if isinstance(seen, MEMORY_ERRORS) and (
            text in _PRIMITIVES or any(word in text for word in _WORDS)
        ):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def shortage(error: BaseException) -> str:
    """What an error says about the memory that ran out, in short."""
    text = str(error).strip().rpartition("DefaultCPUAllocator: ")[2]
    return (text.splitlines() or [""])[0].split(". ")[0].rstrip(".") or "the system gives no more"


def rungs(config: TrainConfig) -> Iterator[tuple[str, TrainConfig]]:
    """Ever smaller configurations, each with the name of what was reduced. First minibatches are
    halved, their gradients added up to the same optimiser step, which changes nothing but speed;
    then rollouts are halved, then lanes, and then it begins again with minibatches."""
    while True:
        before = config
        for what, smaller in (
            ("minibatches", _minibatch(config)),
            ("minibatches", _minibatch(_minibatch(config))),
            ("rollouts", _shorter(_minibatch(_minibatch(config)))),
            ("lanes", _fewer(_shorter(_minibatch(_minibatch(config))))),
        ):
            if smaller != config:
                config = smaller
                yield what, smaller
        if config == before:
            return


def _minibatch(config: TrainConfig) -> TrainConfig:
    half = config.minibatch // 2
    if half < LEAST_MINIBATCH:
        return config
    return _valid(config, minibatch=half, grad_accum=config.grad_accum * 2)


def _shorter(config: TrainConfig) -> TrainConfig:
    half = config.rollout_steps // 2
    if half < LEAST_ROLLOUT or half <= config.per_burn_in:
        return config
    return _smaller(config, rollout_steps=half)


def _fewer(config: TrainConfig) -> TrainConfig:
    half = config.num_envs // 2
    if half < LEAST_LANES:
        return config
    return _smaller(config, num_envs=half)


def _smaller(config: TrainConfig, **changes: int) -> TrainConfig:
    """Half the rollout: half as many minibatches, or, where there is one only, half a one."""
    minibatches = config.steps_per_update // config.minibatch
    if minibatches % 2:
        return _valid(config, minibatch=config.minibatch // 2, **changes)
    accum = config.grad_accum if (minibatches // 2) % config.grad_accum == 0 else minibatches // 2
    return _valid(config, grad_accum=accum, **changes)


def _valid(config: TrainConfig, **changes: int) -> TrainConfig:
    """The changed configuration, or the old one where the change makes no sense."""
    try:
        return config.replace(**changes)
    except ConfigError:
        return config


def describe(before: TrainConfig, after: TrainConfig) -> str:
    """The settings that changed."""
    names = ("num_envs", "rollout_steps", "minibatch", "grad_accum")
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    return ", ".join(
        f"--{name.replace('_', '-')} {getattr(before, name)} -> {getattr(after, name)}"
        for name in changed
    )
