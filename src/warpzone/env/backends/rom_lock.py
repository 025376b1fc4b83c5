"""A file lock between the workers of one parent: they load the ROM one after another."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from warpzone.env.backends.diagnostics import Diagnostics

LOCK = "rom.lock"
WAIT_SECONDS = 120.0
_PAUSE = 0.02


@contextlib.contextmanager
def rom_lock(log: Diagnostics, wait: float = WAIT_SECONDS) -> Iterator[bool]:
    """Holds the lock. Where it cannot be had in time, or at all, the caller goes on without: it is
    there against a rush at the start, not for correctness. A process without a folder is alone."""
    if log.folder is None:
        yield False
        return
    try:
        import fcntl

        handle = os.open(log.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except (ImportError, OSError) as error:
        log.mark(f"lock_unavailable {error}")
        yield False
        return
    try:
        deadline = time.monotonic() + wait
        held = False
        while not held:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = True
            except BlockingIOError:
                if time.monotonic() > deadline:
                    break
                time.sleep(_PAUSE)
        log.mark("lock_acquired" if held else "lock_timeout")
        yield held
    finally:
        # The kernel drops the lock with the file, also when the process dies.
        os.close(handle)
        log.mark("lock_released")
