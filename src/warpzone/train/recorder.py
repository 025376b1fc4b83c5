"""Records updates: the metrics row, and the episodes that ended."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from warpzone.collect.collector import Collected
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.learn.replaying import Replaying
from warpzone.observers.progress import Progress
from warpzone.run.folder import RunFolder
from warpzone.run.names import EPISODES, METRICS
from warpzone.train.budget import Budget

#: Seconds between two lines about the replay.
REPLAY_LINE_EVERY = 10.0


class Times:
    """When an update began, had its rollout, and had learned from it; and the time to record the
    previous update, which counts into this one."""

    def __init__(self, log: float) -> None:
        self.log = log
        self._marks = [time.perf_counter()]

    def mark(self) -> None:
        """Ends the current part and begins the next."""
        self._marks.append(time.perf_counter())

    @property
    def waited(self) -> float:
        """For the rollout."""
        return self._marks[1] - self._marks[0]

    @property
    def learned(self) -> float:
        """From the rollout."""
        return self._marks[2] - self._marks[1]

    @property
    def elapsed(self) -> float:
        """What the update took."""
        return self._marks[2] - self._marks[0] + self.log

    @property
    def since(self) -> float:
        """Until now, from when the rollout was learned from."""
        return time.perf_counter() - self._marks[2]


class Recorder:
    """Makes rows and appends them to the run's files."""

    def __init__(
        self,
        config: TrainConfig,
        budget: Budget,
        folder: RunFolder,
        replaying: Replaying | None,
        ranks: Ranks = ALONE,
    ) -> None:
        self._config = config
        self._budget = budget
        self._folder = folder
        self._replaying = replaying
        self._ranks = ranks
        self._log_seconds = 0.0
        self._replay_line = -REPLAY_LINE_EVERY
        #: Rows of the latest update by file, until they are written.
        self._pending: dict[str, list[dict[str, Any]]] = {}
        #: The latest update whose rows are complete; None until one was made here.
        self._recorded: int | None = None

    def begin(self) -> Times:
        """An update begins."""
        self._recorded = self._budget.global_update
        return Times(self._log_seconds)

    def row(self, losses: dict[str, float], collected: Collected, times: Times) -> dict[str, Any]:
        """The row of the latest update: counters, speeds, losses, episodes, and seconds by
        owner."""
        config, budget = self._config, self._budget
        rate = config.steps_per_update / times.elapsed
        owners = self._owners(collected, times)
        return {
            "timestamp": time.time(),
            "update": budget.global_update,
            "global_step": budget.global_step,
            "seconds": budget.seconds,
            "env_steps_per_sec": rate,
            "env_frames_per_sec": rate * config.frame_skip,
            "updates_per_sec": 1.0 / times.elapsed,
            "eta": budget.left(rate),
            "policy_lag": budget.global_update - 1 - collected.version,
            **losses,
            **collected.summary,
            **{f"time_{owner}": value for owner, value in sorted(owners.items())},
            **self._communication(times),
        }

    def _communication(self, times: Times) -> dict[str, float]:
        """The share of the update that this rank spent in exchanges with the others."""
        if not self._ranks.grouped:
            return {}
        return {"communication_time_share": min(1.0, self._ranks.seconds() / times.elapsed)}

    def write(
        self, row: dict[str, Any], collected: Collected, progress: Progress, times: Times
    ) -> None:
        """Writes the row to the run's files and to the display."""
        step = {"global_step": self._budget.global_step}
        rows = [dataclasses.asdict(episode) | step for episode in collected.episodes]
        self._pending = {METRICS: [row] if self._logged() else [], EPISODES: rows}
        self._append()
        progress.update(row)
        self._say_replay(progress)
        self._log_seconds = times.since

    def catch_up(self) -> None:
        """After a failure: the latest update gets the rows that could not be written. If the
        failure came before there were any, its row has the counters alone."""
        budget = self._budget
        missing = self._recorded not in (None, budget.global_update)
        if missing and not self._pending and self._logged():
            counted = {"update": budget.global_update, "global_step": budget.global_step}
            row = {"timestamp": time.time(), "seconds": budget.seconds, **counted}
            self._pending = {METRICS: [row]}
        self._append()

    def _logged(self) -> bool:
        return self._budget.global_update % self._config.log_interval == 0

    def _append(self) -> None:
        for name in list(self._pending):
            self._folder.append(name, self._pending[name])
            del self._pending[name]
        self._recorded = self._budget.global_update

    def _say_replay(self, progress: Progress) -> None:
        """Prints the state of the replay at intervals."""
        seconds = self._budget.seconds
        if self._replaying is not None and seconds - self._replay_line > REPLAY_LINE_EVERY:
            self._replay_line = seconds
            progress.say(self._replaying.stat_line())

    def _owners(self, collected: Collected, times: Times) -> dict[str, float]:
        """Where collecting overlaps with learning, only the wait for it is the update's own."""
        owners = {**collected.owners, "learn": times.learned, "log": times.log}
        if self._config.collects_beside:
            owners["wait"] = times.waited
        else:
            collecting = sum(collected.owners.values())
            owners["other"] = owners.get("other", 0.0) + max(0.0, times.waited - collecting)
        return owners
