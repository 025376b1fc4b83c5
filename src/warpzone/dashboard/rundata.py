"""The dashboard's data of one run, refreshed from its folder."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import Any

from warpzone.dashboard.stage_counts import Stages
from warpzone.dashboard.table import Table
from warpzone.dashboard.tail import RowsTail, TextTail, slim
from warpzone.run.names import (
    ALERTS,
    ANSWERS,
    ENV_EVENTS,
    EPISODES,
    EVALS,
    HEARTBEAT,
    LOG,
    LOGS,
    METRICS,
    WEIGHTS_SUFFIX,
)
from warpzone.run.opening import File, listing, read_json
from warpzone.run.reader import RunReader

MOST_CHECKPOINTS = 200
MOST_ANSWERS = 100
MOST_EVENTS = 200
#: Rows of the newest evaluation: 32 stages, 31 start delays and two policies make 1,984.
MOST_EVALS = 5000
#: How the message of a heartbeat begins that is one.
HINT = "hint: "


class RunData:
    """One run. `refresh` is called from one thread at a time; the rest reads under the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reader = RunReader(path)
        self.lock = threading.Lock()
        self.metrics = Table()
        self.stages = Stages()
        self.log = TextTail(path, Path(LOGS) / LOG)
        self.answers: deque[dict[str, Any]] = deque(maxlen=MOST_ANSWERS)
        #: Alerts and events of environments, by their file, oldest first.
        self.events: dict[str, deque[dict[str, Any]]] = {
            name: deque(maxlen=MOST_EVENTS) for name in (ENV_EVENTS, ALERTS)
        }
        self.checkpoints: list[dict[str, Any]] = []
        self.videos: list[dict[str, Any]] = []
        #: What a browser may ask for by its name, and where it is below the run.
        self.video_names: dict[str, str] = {}
        self.evals: list[dict[str, Any]] = []
        self.heartbeat: dict[str, Any] = {}
        #: The last hint that a heartbeat carried, and the update it was given at.
        self.hint: dict[str, Any] = {}
        self.alert: dict[str, Any] = {}
        #: Counters of changes, so that a page requests only changed parts.
        self.versions = dict.fromkeys(
            ("metrics", "stages", "episodes", "log", "answers", "events", "checkpoints"), 0
        )
        kinds = (METRICS, EPISODES, EVALS, HEARTBEAT, ANSWERS, ALERTS, ENV_EVENTS)
        self._tails = {name: RowsTail(path, name) for name in kinds}
        self._resets = dict.fromkeys(self._tails, 0)
        self._listed: tuple[Any, ...] = ()

    def refresh(self) -> None:
        """Reads what is new."""
        with self.lock:
            self._metrics()
            self._episodes()
            self._evals()
            for row in self._rows(HEARTBEAT):
                self.heartbeat = slim(row)
                if str(self.heartbeat.get("message", "")).startswith(HINT):
                    self.hint = {
                        "text": self.heartbeat["message"],
                        "update": self.heartbeat.get("update"),
                    }
            answers = [slim(row) for row in self._rows(ANSWERS)[-MOST_ANSWERS:]]
            if answers:
                self.answers.extend(answers)
                self.versions["answers"] += 1
            self._events()
            if self.log.read():
                self.versions["log"] += 1
            self._list_files()

    def _events(self) -> None:
        for name in (ENV_EVENTS, ALERTS):
            rows = [slim(row) for row in self._rows(name)[-MOST_EVENTS:]]
            self.events[name].extend(rows)
            self.versions["events"] += bool(rows)
            if rows and name == ALERTS:
                self.alert = rows[-1]

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return self._tails[name].read()

    def _was_reset(self, name: str) -> bool:
        resets = self._tails[name].resets
        changed = resets != self._resets[name]
        self._resets[name] = resets
        return changed

    def _metrics(self) -> None:
        before = self.metrics.version
        rows = self._rows(METRICS)
        if self._was_reset(METRICS):
            self.metrics.clear()
        self.metrics.add(row for row in rows if "update" in row)
        self.versions["metrics"] += self.metrics.version != before

    def _episodes(self) -> None:
        rows = self._rows(EPISODES)
        if self._was_reset(EPISODES):
            self.stages.clear_episodes()
        if rows:
            self.stages.add(map(slim, rows))
            self.versions["episodes"] += 1
            self.versions["stages"] += 1

    def _evals(self) -> None:
        fresh = self._rows(EVALS)
        if self._was_reset(EVALS):
            self.stages.forget_evaluations()
        if not fresh:
            return
        self.stages.remember(fresh)
        rows = [slim(row) for row in fresh[-MOST_EVALS:]]
        newest = rows[-1].get("global_step")
        if self.evals and self.evals[-1].get("global_step") == newest:
            rows = self.evals + rows
        self.evals = [row for row in rows if row.get("global_step") == newest][-MOST_EVALS:]
        self.stages.evaluated(self.evals)
        self.versions["stages"] += 1

    def _list_files(self) -> None:
        sidecars, weights, videos = listed = (
            self.reader.sidecars(),
            listing(self.path, "", (WEIGHTS_SUFFIX,)),
            self.reader.videos(),
        )
        if listed == self._listed:
            return
        self._listed = listed
        newest = sorted(sidecars, key=lambda file: -file.time)[:MOST_CHECKPOINTS]
        self.checkpoints = [_checkpoint(self.path, file) for file in newest]
        self.checkpoints += map(_row, weights)
        self.video_names = {Path(file.name).name: file.name for file in videos}
        self.videos = sorted(map(_row, videos), key=lambda row: -row["time"])
        self.versions["checkpoints"] += 1


def _row(file: File) -> dict[str, Any]:
    """A file in a list of them. The page knows it by its name without the folder."""
    return {"name": Path(file.name).name, "bytes": file.bytes, "time": file.time}


def _checkpoint(run: Path, file: File) -> dict[str, Any]:
    """A checkpoint from its side-car, with the bytes of all its files."""
    row, said = _row(file), read_json(run, file.name)
    state, files = said.get("save_state"), said.get("files")
    if isinstance(state, dict):
        row |= slim({key: state.get(key) for key in ("global_update", "global_step", "reason")})
    if isinstance(files, dict):
        parts = [part.get("bytes") for part in files.values() if isinstance(part, dict)]
        row["bytes"] += sum(part for part in parts if isinstance(part, int))
    return row
