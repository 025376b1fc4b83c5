"""A sweep on this machine: starts workers, replaces those that die, and says what was found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from warpzone.config import ConfigError
from warpzone.run.names import CONFIG, POPULATION
from warpzone.search.address import Address
from warpzone.search.budget import Account, Caps
from warpzone.search.records import best_trial, command, write_record
from warpzone.search.space import Space
from warpzone.search.storage import telling
from warpzone.search.studies import open_study
from warpzone.search.worker import BROKEN, DONE, STOPPED, WRONG, Job

POLL = 0.2
#: Workers that may die, for each that was asked for, before the sweep ends.
DEATHS = 5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Order:
    """A sweep as its command asks for it."""

    file: Path
    space: Space
    folder: Path
    storage: Address
    trials: int
    workers: int
    caps: Caps
    heartbeat: int


class SweepStopped(Exception):  # noqa: N818 (what was asked for is no error)
    """A signal ended the sweep."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = 128 + signum


def sweep(order: Order) -> int:
    """Runs to the end and returns the exit code. ConfigError or StorageError before anything is
    written if the sweep cannot be, StorageError if its storage is lost."""
    for name, what in ((CONFIG, "run"), (POPULATION, "population")):
        if (order.folder / name).exists():
            raise ConfigError(
                f"{order.folder} is a {what}; give the sweep another name or --runs-dir"
            )
    with telling(order.storage):
        return _sweep(order)


def _sweep(order: Order) -> int:
    if order.storage.is_file and order.storage.path.parent == order.folder:
        order.folder.mkdir(parents=True, exist_ok=True)
    study = open_study(order.space, order.storage, order.heartbeat)
    order.folder.mkdir(parents=True, exist_ok=True)
    try:
        codes = _Crew(order).work()
    finally:
        write_record(order.space, study, order.folder)
    account = Account(study.get_trials(deepcopy=False))
    best = best_trial(study)
    print(
        f"[sweep] {account.ended} of {order.trials} trials are over, {account.steps:,} steps; "
        f"folder {order.folder}"
    )
    if best is None:
        reasons = [t.user_attrs["reason"] for t in account.trials if "reason" in t.user_attrs]
        why = f"; the last reason: {reasons[-1]}" if reasons else ""
        print(f"warpzone sweep: no trial was completed{why}.", file=sys.stderr)
        return 1
    print(f"[sweep] best: trial {best.number}, {order.space.objective.describe()}: {best.value:g}")
    print(f"[sweep] {command(order.space, best.params)}")
    return max(codes, key=(DONE, STOPPED, WRONG, BROKEN).index, default=DONE) and 1


class _Crew:
    """The workers of this machine."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._deaths = 0
        self._codes: list[int] = []
        self._signum = 0

    def work(self) -> list[int]:
        """Until all workers have ended by themselves; their exit codes."""
        with self._passed_on():
            running = [self._start() for _ in range(self._order.workers)]
            try:
                while running:
                    time.sleep(POLL)
                    running = [kept for worker in running for kept in self._look(worker)]
            finally:
                self._end(running)
        if self._signum:
            raise SweepStopped(self._signum)
        return self._codes

    def _start(self) -> subprocess.Popen[str]:
        order = self._order
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        threads = max(1, (cores or 1) // order.workers)
        job = Job(
            str(order.file.resolve()),
            str(order.folder.resolve()),
            order.storage.text,
            order.trials,
            order.heartbeat,
            threads,
            order.caps,
        )
        worker = subprocess.Popen(
            [sys.executable, "-m", "warpzone.search.worker"],
            stdin=subprocess.PIPE,
            text=True,
            env={"OMP_NUM_THREADS": str(threads), **os.environ},
            # A terminal's Ctrl-C reaches them through this process, once.
            start_new_session=True,
        )
        if worker.stdin is not None:
            worker.stdin.write(job.to_json() + "\n")
            worker.stdin.flush()
        return worker

    def _look(self, worker: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
        """The worker if it is still there, another one in its place if it was killed."""
        code = worker.poll()
        if code is None:
            yield worker
            return
        if worker.stdin is not None:
            worker.stdin.close()
        if code in (DONE, STOPPED, WRONG, BROKEN) or self._signum:
            self._codes.append(code if code in (DONE, STOPPED, WRONG) else BROKEN)
            return
        self._deaths += 1
        if self._deaths > DEATHS * self._order.workers:
            self._codes.append(BROKEN)
            return
        end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        print(f"[sweep][warn] a worker died ({end}) and is replaced", file=sys.stderr, flush=True)
        yield self._start()

    def _end(self, running: list[subprocess.Popen[str]]) -> None:
        for worker in running:
            worker.terminate()
        for worker in running:
            worker.wait()

    @contextmanager
    def _passed_on(self) -> Iterator[None]:
        """Signals to this process are passed on: workers save their trials and put them back."""
        before = {}

        def handle(signum: int, _frame: FrameType | None) -> None:
            self._signum = signum
            raise _Signal

        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, handle)
        try:
            yield
        except _Signal:
            pass
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Signal(BaseException):
    """Leaves the loop of `_Crew.work`."""
