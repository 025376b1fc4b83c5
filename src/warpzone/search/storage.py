"""Opening the storage of a sweep: a journal file or a database, with heartbeats on both, so that
the trials of killed workers are noticed."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optuna
from optuna.storages import JournalStorage, RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.storages._heartbeat import BaseHeartbeat
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from warpzone.run.opening import parse_json
from warpzone.search.address import Address
from warpzone.search.scrub import hide_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from optuna.trial import FrozenTrial

    Stale = Callable[[optuna.Study, FrozenTrial], None]

#: Seconds to wait for a database.
CONNECT_SECONDS = 10
#: A trial is stale after this many heartbeats have failed to come.
MISSED = 4
#: How often the trial of a killed worker is tried again.
RETRIES = 3
#: Bytes of a journal in which its first line must end.
FIRST_LINE = 1 << 16


class StorageError(OSError):
    """A storage that cannot be used; one sentence without address and password."""


class LiveJournal(JournalStorage, BaseHeartbeat):
    """A journal file whose running trials show that they are alive, which Optuna does for
    databases only: each touches a file in a folder beside the journal."""

    def __init__(self, path: Path, interval: int, retry: Stale) -> None:
        # Made by the first trial: beside a journal that is refused there is nothing of ours.
        self._alive = path.with_name(path.name + ".alive")
        self._interval = interval
        self._retry = retry
        super().__init__(JournalFileBackend(str(path)))

    def record_heartbeat(self, trial_id: int) -> None:
        self._alive.mkdir(exist_ok=True)
        (self._alive / str(trial_id)).touch()

    def _get_stale_trial_ids(self, study_id: int) -> list[int]:
        running = self.get_all_trials(study_id, deepcopy=False, states=(TrialState.RUNNING,))
        if not running:
            return []
        # The file system's clock and not this machine's: others may write here.
        self._alive.mkdir(exist_ok=True)
        probe = self._alive / f"now-{os.getpid()}"
        probe.touch()
        now = probe.stat().st_mtime
        probe.unlink(missing_ok=True)
        return [trial._trial_id for trial in running if now - self._seen(trial) > self._patience]

    @property
    def _patience(self) -> float:
        return MISSED * self._interval

    def _seen(self, trial: FrozenTrial) -> float:
        """When a trial was last alive; before its first heartbeat, when it began."""
        try:
            return (self._alive / str(trial._trial_id)).stat().st_mtime
        except FileNotFoundError:
            began = trial.datetime_start or datetime.now()
            return began.timestamp()

    def get_heartbeat_interval(self) -> int:
        return self._interval

    def get_heartbeat_stale_trial_callback(self) -> Stale:
        return self._retry


class LiveDatabase(RDBStorage):
    """A database that may be away for a while: a heartbeat that does not reach it is a missed one
    and not the end of all heartbeats."""

    def record_heartbeat(self, trial_id: int) -> None:
        try:
            super().record_heartbeat(trial_id)
        except _database_errors():
            return


def quiet() -> None:
    """Optuna's own messages repeat what the sweep says, or warn that heartbeats may change. Those
    of lost connections name the server."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    for name in ("sqlalchemy", "psycopg"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def open_storage(address: Address, interval: int) -> JournalStorage | RDBStorage:
    """Opens a storage, and makes it where there is none; StorageError if that fails."""
    quiet()
    retry = RetryHeartbeatStaleTrialCallback(max_retry=RETRIES, inherit_intermediate_values=True)
    if address.is_file:
        return _open_journal(address.path, interval, retry)
    return _open_database(address, interval, retry)


@contextmanager
def telling(address: Address) -> Iterator[None]:
    """Whatever a database fails at is a StorageError: one sentence without the address."""
    if address.is_file:
        yield
        return
    kinds = _database_errors()
    # Optuna trips over a variable of its own where it cannot note how a trial ended.
    caught: tuple[type[Exception], ...] = (*kinds, UnboundLocalError)
    try:
        yield
    except caught as error:
        first: BaseException | None = error
        while first is not None and not isinstance(first, kinds):
            first = first.__cause__ or first.__context__
        if first is None:
            raise
        raise StorageError(f"the database failed: {_reason(first, address)}") from error


def _database_errors() -> tuple[type[Exception], ...]:
    from sqlalchemy.exc import SQLAlchemyError

    return SQLAlchemyError, optuna.exceptions.StorageInternalError


def _open_journal(path: Path, interval: int, retry: Stale) -> JournalStorage:
    if not path.parent.is_dir():
        raise StorageError(f"the folder {path.parent} of the storage does not exist")
    _require_journal(path)
    try:
        return LiveJournal(path, interval, retry)
    except (ValueError, KeyError, AssertionError, TypeError) as error:
        raise StorageError(
            f"{path} is no journal that optuna {optuna.__version__} can read: {error}"
        ) from error


def _require_journal(path: Path) -> None:
    """StorageError for a file that is something else; nothing is written to it then."""
    if not path.exists():
        return
    if not path.is_file():
        raise StorageError(f"{path} is no plain file")
    with path.open("rb") as file:
        line = file.readline(FIRST_LINE)
    if not line:
        return
    try:
        first = parse_json(line)
    except ValueError:
        first = None
    if not isinstance(first, dict) or "op_code" not in first:
        raise StorageError(f"{path} is no journal of optuna")


def _open_database(address: Address, interval: int, retry: Stale) -> RDBStorage:
    from sqlalchemy.exc import ArgumentError

    began = time.monotonic()
    try:
        url, options = _engine(address)
        return LiveDatabase(
            url,
            engine_kwargs=options,
            heartbeat_interval=interval,
            grace_period=MISSED * interval,
            heartbeat_stale_trial_callback=retry,
        )
    except ImportError as error:
        raise StorageError(
            "PostgreSQL needs psycopg; install it with: pip install 'warpzone[sweep]'"
        ) from error
    except (ArgumentError, ValueError) as error:
        raise StorageError("the URL of the storage cannot be used") from error
    except _database_errors() as error:
        waited = time.monotonic() - began
        raise StorageError(
            f"the database cannot be reached ({waited:.0f} s): {_reason(error, address)}"
        ) from error
    except RuntimeError as error:
        # The tables are of a version of optuna that this one cannot read.
        raise StorageError(
            f"the storage is of another version: {_reason(error, address)}"
        ) from error


def _engine(address: Address) -> tuple[str, dict[str, Any]]:
    from sqlalchemy.engine import make_url

    url = make_url(address.text)
    if url.get_backend_name() != "postgresql":
        return address.text, {}
    url = url.set(drivername="postgresql+psycopg")
    return url.render_as_string(hide_password=False), {
        # A connection that a restarted server has dropped is opened again.
        "pool_pre_ping": True,
        "connect_args": {"connect_timeout": CONNECT_SECONDS},
    }


def _reason(error: BaseException, address: Address) -> str:
    """The first line of the innermost error, without anything of the address."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = hide_names(address.scrub(lines[0])) if lines else ""
    return said.rstrip(".") or type(error).__name__
