"""Python's collector of garbage, kept away where it does harm."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_count = 0
_was_on = False


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for cycles of objects meanwhile, in any thread; several threads may ask for it at
    once. Among millions of objects a search takes seconds; and what it frees may be a CUDA graph,
    which must not happen while another one is recorded."""
    global _count, _was_on
    with _lock:
        if _count == 0:
            _was_on = gc.isenabled()
            gc.disable()
        _count += 1
    try:
        yield
    finally:
        with _lock:
            _count -= 1
            if _count == 0 and _was_on:
                gc.enable()
