"""Where copies of the tree are while faults are planted: a folder that is gone afterwards, however
the program is ended."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import psutil

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds for killed processes to be gone.
PATIENCE = 10.0
_stopped = threading.Event()


@contextmanager
def workplace() -> Iterator[Path]:
    """A signal ends the tests that are running, which have sessions of their own, and removes the
    folder. Signals that are ignored (nohup) stay so."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:

        def stop(signum: int, _: FrameType | None) -> None:
            _stopped.set()
            # Threads may be starting the next one.
            while children := psutil.Process().children(recursive=True):
                for child in children:
                    with suppress(psutil.NoSuchProcess):
                        child.kill()
                psutil.wait_procs(children, PATIENCE)
            shutil.rmtree(name, ignore_errors=True)
            # Threads that wait for tests would keep the program alive.
            os._exit(128 + signum)

        heard = [one for one in SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
        before = {one: signal.signal(one, stop) for one in heard}
        try:
            yield Path(name)
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def hold_if_stopped() -> None:
    """Tests that were ended by a signal have no verdict: their thread goes no further."""
    if _stopped.is_set():
        threading.Event().wait()
