"""Settings of memory and threads for CPUs."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from warpzone.model.agent import Agent

#: Parameters of glibc's mallopt, by their numbers in malloc.h.
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3
#: The most that glibc takes for `MMAP_THRESHOLD`.
LARGEST_KEPT = 32 << 20
NEVER = 2**31 - 1
#: Floating-point operations of a decision for which one more thread pays. For a smaller decision
#: the synchronisation costs more than it saves, and waiting threads take cores from the engine.
WORTHWHILE = 100_000_000


def keep_freed_memory() -> bool:
    """Keeps freed memory in the process instead of returning it to the system at once.

    A minibatch frees some ten megabytes, and the next one allocates them again. Returned memory
    comes back as new pages, each faulted in and cleared: a fifth of the time of an update. Returns
    whether the C library accepts the setting; `MALLOC_TRIM_THRESHOLD_` takes precedence.
    """
    if platform.libc_ver()[0] != "glibc" or "MALLOC_TRIM_THRESHOLD_" in os.environ:
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(TRIM_THRESHOLD, NEVER))


@torch.no_grad()
def acting_threads(agent: Agent, lanes: int) -> int:
    """Threads for decisions of so many lanes: a matter of the network's size, of nothing that is
    measured, so that a run can be repeated."""
    # Imports Triton where there is one, for which runs on CUDA need not wait.
    from torch.utils.flop_counter import FlopCounterMode

    spec = agent.spec
    obs = torch.zeros((1, spec.planes, spec.height, spec.width), dtype=torch.uint8)
    previous = torch.zeros(1, dtype=torch.int64)
    with FlopCounterMode(display=False) as counter:
        agent.act(obs, previous, agent.initial_state(1), previous == 0)
    operations: int = counter.get_total_flops() * lanes
    return min(torch.get_num_threads(), max(1, operations // WORTHWHILE))


@contextmanager
def computing_with(threads: int) -> Iterator[None]:
    """Gives the operations of this thread so many threads in the block; 0 for as many as ever."""
    before = torch.get_num_threads()
    if threads in (0, before):
        yield
        return
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def has_bfloat16() -> bool:
    """Whether this processor multiplies in bfloat16, which takes half the time; elsewhere it would
    take longer. Older versions of PyTorch do not say."""
    asked = getattr(torch.cpu, "get_capabilities", None)
    there = {} if asked is None else asked()
    return bool(there.get("avx512_bf16") or there.get("amx_bf16"))
