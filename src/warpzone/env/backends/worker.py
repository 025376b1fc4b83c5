"""What runs in a worker process: one lane, answering its parent."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

import numpy as np

from warpzone.env.backends.diagnostics import Diagnostics
from warpzone.env.backends.interface import BackendSpec, Lanes
from warpzone.env.backends.select import make_lanes
from warpzone.env.backends.shared_rows import SharedRows


@dataclass(frozen=True)
class Assignment:
    """What a worker is told when it starts."""

    #: Of a single lane.
    spec: BackendSpec
    #: The lane, which is also the worker's place in the line at the start.
    index: int
    folder: str
    rows: SharedRows
    #: Seconds to wait before anything is done.
    delay: float


def run(assignment: Assignment, connection: Connection) -> None:
    """The life of a worker. It answers what it can; whatever it cannot ends it, with the reason in
    its file, and its parent starts another."""
    # Ctrl-C is for the parent, which ends its workers in good order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = Diagnostics.open(assignment.folder, assignment.index, assignment.spec.env(0))
    log.mark("startup_wait")
    time.sleep(assignment.delay)
    log.mark("start")
    with log.failures():
        lanes = make_lanes(assignment.spec, log)
    log.mark("done")
    connection.send(lanes.obs_shape)
    try:
        with log.failures():
            _serve(lanes, assignment, connection)
    finally:
        lanes.close()
    log.mark("closed")


def _serve(lanes: Lanes, assignment: Assignment, connection: Connection) -> None:
    row = assignment.rows.row(assignment.index)
    parent = parent_process()
    waiting: list[Any] = [connection] if parent is None else [connection, parent.sentinel]
    while connection in wait(waiting):
        try:
            command, value = connection.recv()
        except (EOFError, ConnectionError):
            # The parent is gone, perhaps without having read the last answer.
            return
        if command == "close":
            return
        answer = _obey(lanes, row, command, value)
        try:
            connection.send(answer)
        except ConnectionError:
            return


def _obey(lanes: Lanes, row: list[Any], command: str, value: Any) -> Any:
    if command == "step":
        lanes.step(np.array([value], np.int64), *row)
        return None
    if command == "reset":
        lanes.reset(None, row[0], row[4])
        return None
    return getattr(lanes, command)(*value)
