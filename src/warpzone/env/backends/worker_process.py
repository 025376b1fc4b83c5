"""The parent's handle on one worker process: start it, ask it, end it, whatever state it is in."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

from warpzone.env.backends import worker
from warpzone.env.backends.diagnostics import STACK_SIGNAL, log_of
from warpzone.env.backends.interface import BackendError

#: Time for a hanging worker to write its stacks, much of it for busy machines; for the process of a
#: broken pipe to be gone; and for a polite one to go.
_STACK_SECONDS = 3.0
_GONE_SECONDS = 0.3
_CLOSE_SECONDS = 2.0
#: Stacks that have not grown for so long are whole.
_QUIET_SECONDS = 0.1


class WorkerLost(BackendError):  # noqa: N818 - an event, dealt with by replacing the worker
    """A worker that died, hung or failed, and is gone."""


class WorkerProcess:
    """One process with one lane."""

    def __init__(self, context: BaseContext, assignment: worker.Assignment) -> None:
        self.index = assignment.index
        self._folder = assignment.folder
        self.began = time.monotonic()
        self._pipe, theirs = context.Pipe()
        self._process: Any = context.Process(  # type: ignore[attr-defined]
            target=worker.run,
            args=(assignment, theirs),
            name=f"env-{assignment.index}",
            daemon=True,
        )
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """The process id."""
        return int(self._process.pid)

    def handles(self) -> tuple[Any, ...]:
        """What becomes ready with an answer or an end. The process is watched too: another child
        may hold the other end of the pipe open."""
        return self._pipe, self._process.sentinel

    def ask(self, command: str, value: Any = None) -> None:
        """Sends a command; `answer` waits for what becomes of it."""
        try:
            self._pipe.send((command, value))
        except OSError as error:
            raise self._lost(f"died before {command}") from error

    def answer(self, deadline: float, what: str) -> Any:
        """The value of the answer; a worker that gives none in time is killed."""
        left = max(0.0, deadline - time.monotonic())
        ready = wait(self.handles(), left)
        if not ready:
            raise self._lost(f"hung in {what}")
        try:
            if self._pipe not in ready and not self._pipe.poll():
                raise EOFError
            return self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._lost(f"died in {what}") from error

    def close(self) -> None:
        """Asks the worker to go, and ends it when it does not."""
        try:
            self._pipe.send(("close", None))
        except OSError:
            pass
        else:
            self._process.join(_CLOSE_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Ends the process at once."""
        if self._process.is_alive():
            self._process.kill()
        self._process.join()
        self._pipe.close()

    def _lost(self, how: str) -> WorkerLost:
        """Lets a living worker write its stacks, then ends it."""
        if self._process.is_alive() and how.startswith("hung"):
            self._write_stacks()
        # A pipe breaks a moment before its process is gone.
        self._process.join(0.0 if how.startswith("hung") else _GONE_SECONDS)
        pid, code = self.pid, self._process.exitcode
        self.kill()
        ended = "" if code is None else f" with exit code {code}"
        return WorkerLost(f"worker {self.index} (pid {pid}) {how}{ended}")

    def _write_stacks(self) -> None:
        """Has the worker write its stacks into its file, and waits until they are there."""
        if STACK_SIGNAL is None:
            return
        log = log_of(self._folder, self.index, self.pid)
        before = size = _size(log)
        os.kill(self.pid, STACK_SIGNAL)
        deadline = time.monotonic() + _STACK_SECONDS
        while self._process.is_alive() and time.monotonic() < deadline:
            self._process.join(_QUIET_SECONDS)
            last, size = size, _size(log)
            if before < size == last:
                return


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def first_to_answer(workers: list[WorkerProcess], seconds: float) -> list[WorkerProcess]:
    """Those that have answered or died as soon as there are any; none when the time is up."""
    waiting = {handle: worker for worker in workers for handle in worker.handles()}
    heard = {waiting[handle].index for handle in wait(list(waiting), seconds)}
    return [worker for worker in workers if worker.index in heard]
