"""A worker of a sweep: a process that takes trials from the study until none is left. It is told
what to do on its standard input, so that no address is among its words, and ends when that closes,
as it does when whoever started it dies."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
import threading
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from warpzone.config import ConfigError
from warpzone.search.address import Address
from warpzone.search.budget import SURPLUS, Account, Caps
from warpzone.search.space import Space, read_space

#: Seconds between two looks at trials of other workers.
POLL = 1.0
#: Exit codes of a worker: nothing is left to do, it was stopped, it cannot go on, wrong settings.
DONE, STOPPED, BROKEN, WRONG = 0, 3, 1, 2


@dataclass(frozen=True)
class Job:
    """What a worker is to do."""

    space: str
    folder: str
    storage: str
    trials: int
    heartbeat: int
    threads: int
    caps: Caps

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        values: dict[str, Any] = json.loads(text)
        return cls(**{**values, "caps": Caps(**values["caps"])})


class Worker:
    """Takes trials from a study, one after the other."""

    def __init__(self, job: Job, space: Space, stop: Any) -> None:
        from warpzone.search.studies import open_study

        self.job = job
        self.space = space
        self.folder = Path(job.folder)
        self.stop = stop
        self.study = open_study(space, Address(job.storage), job.heartbeat)
        self._number = -1

    def work(self) -> None:
        """Until all trials are over, a limit is reached, or it is stopped. Waits for the trials of
        other workers, who may die."""
        from optuna.storages import fail_stale_trials

        waited = False
        while not self.stop:
            fail_stale_trials(self.study)
            account = Account(self.study.get_trials(deepcopy=False))
            if why := account.exceeded(self.job.caps, datetime.now()):
                _say(f"the sweep ends: {why}")
                return
            if account.waiting or len(account.counted) < self.job.trials:
                self._one()
                waited = False
            elif account.running:
                if not waited:
                    _say(f"waiting for {account.running} trials of other workers")
                waited = True
                time.sleep(POLL)
            else:
                return

    def _one(self) -> None:
        from optuna.exceptions import UpdateFinishedTrialError

        from warpzone.search.records import write_record
        from warpzone.search.trial import GivenBackError, TrialFailedError

        try:
            # The study calls the heartbeat's thread, and fails what is raised here.
            self.study.optimize(
                self._objective, n_trials=1, catch=(GivenBackError, TrialFailedError)
            )
        except (UpdateFinishedTrialError, ValueError):
            # Another worker took this one for dead and has its trial now.
            if not self._frozen().state.is_finished():
                raise
            _say(f"trial {self._number}: another worker has it now")
        _say(_outcome(self._frozen()))
        write_record(self.space, self.study, self.folder)

    def _objective(self, trial: Any) -> float:
        from warpzone.search.trial import GivenBackError, TrialFailedError, run_trial

        self._number = trial.number
        earlier = [t for t in Account(self._trials()).counted if t.number < trial.number]
        if len(earlier) >= self.job.trials and not self._repeats(trial):
            # Two workers asked for the last trial at once.
            trial.set_user_attr(SURPLUS, True)
            raise TrialFailedError("there are enough trials")
        _say(f"trial {trial.number} begins")
        try:
            return run_trial(
                trial,
                self.space,
                self.folder,
                caps=self.job.caps,
                threads=self.job.threads,
                stop=self.stop,
            )
        except GivenBackError:
            self._give_back(trial)
            raise

    def _repeats(self, trial: Any) -> bool:
        from optuna.storages import RetryHeartbeatStaleTrialCallback

        frozen = self._trials()[trial.number]
        return RetryHeartbeatStaleTrialCallback.retried_trial_number(frozen) is not None

    def _give_back(self, trial: Any) -> None:
        """Puts the trial back, for whoever goes on with the sweep. It is no failure, so it does not
        count as a retry."""
        from optuna.storages import RetryHeartbeatStaleTrialCallback

        again = RetryHeartbeatStaleTrialCallback(inherit_intermediate_values=True)
        again(self.study, self._trials()[trial.number])

    def _trials(self) -> list[Any]:
        return self.study.get_trials(deepcopy=False)

    def _frozen(self) -> Any:
        return self._trials()[self._number]


def _outcome(trial: Any) -> str:
    from warpzone.search.budget import REASON, STEPS

    state = trial.state.name.lower()
    steps = f"{trial.user_attrs.get(STEPS, 0):,} steps"
    value = f", value {trial.value:g}" if state == "complete" else ""
    reason = f": {trial.user_attrs[REASON]}" if REASON in trial.user_attrs else ""
    if trial.user_attrs.get(SURPLUS):
        return f"trial {trial.number} is one too many"
    state = "stopped" if state == "fail" and not reason else state
    return f"trial {trial.number} {state}{value} ({steps}){reason}"


def _say(text: str) -> None:
    print(f"[sweep] {text}", file=sys.stderr, flush=True)


def _end_with_parent() -> None:
    """Standard input closes when whoever started this process is gone."""
    while sys.stdin.readline():
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> int:
    """The process: reads its job, works, and returns an exit code."""
    from warpzone.search.storage import StorageError, telling
    from warpzone.train.stopping import signals

    job = Job.from_json(sys.stdin.readline())
    address = Address(job.storage)
    # A signal to the group of processes also reaches whoever started this one, who passes it on.
    with signals() as stop:
        threading.Thread(target=_end_with_parent, daemon=True).start()
        try:
            with telling(address):
                Worker(job, read_space(Path(job.space)), stop).work()
        except ConfigError as error:
            _say(f"[warn] a worker ends: {error}")
            return WRONG
        except StorageError as error:
            _say(f"[warn] a worker ends: {error}")
            return BROKEN
        except OSError as error:
            _say(f"[warn] a worker ends: {address.scrub(str(error))}")
            return BROKEN
    return STOPPED if stop else DONE


if __name__ == "__main__":
    sys.exit(main())
