"""Processes that train, forked from one that has imported everything."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

#: Of Linux' `prctl`.
PR_SET_PDEATHSIG = 1


class BrokenError(Exception):
    """What must not happen."""


def seed_generators() -> None:
    """A fork seeds Python's own generator anew. Nothing in training draws from it, but it is part
    of a checkpoint, and so is to be the same in both runs."""
    random.seed(1)
    np.random.seed(1)


def _end_with_parent() -> None:
    """A process that nobody waits for any more must not go on training."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Life:
    """A process that trains."""

    def __init__(self, work: Callable[[], int], log: Path) -> None:
        """work: what it does, up to its exit code."""
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                _end_with_parent()
                handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                os.dup2(handle, 1)
                os.dup2(handle, 2)
                seed_generators()
                torch.backends.cudnn.deterministic = True
                code = work()
                sys.stdout.flush()
                sys.stderr.flush()
            except BaseException:  # As the interpreter would.
                traceback.print_exc()
                raise
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def end(self, number: signal.Signals) -> int:
        """Sends a signal and waits for the end."""
        if self.code is None:
            os.kill(self.pid, number)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code
