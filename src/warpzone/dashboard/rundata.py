"""All that the dashboard knows of one run, brought up to date from its folder."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

from warpzone.dashboard.stage_counts import Stages
from warpzone.dashboard.table import Table
from warpzone.dashboard.tail import RowsTail, TextTail
from warpzone.run.control import ANSWERS, FOLDER, STATE

#: A run that has written nothing for this long is not called live any more.
LIVE_FOR = 60.0
MOST_CHECKPOINTS = 200
MOST_JSON = 1 << 20
VIDEOS = (".mp4", ".gif")


class RunData:
    """One run. `refresh` is called from one thread at a time; the rest reads under the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.metrics = Table()
        self.stages = Stages()
        self.log = TextTail(path / "logs" / "train.log")
        self.answers: deque[dict[str, Any]] = deque(maxlen=100)
        self.checkpoints: list[dict[str, Any]] = []
        self.videos: list[dict[str, Any]] = []
        #: What a browser may ask for by its name, and where it is.
        self.video_paths: dict[str, Path] = {}
        self.evals: list[dict[str, Any]] = []
        self.heartbeat: dict[str, Any] = {}
        #: Changes with every change of the part, so that a page asks for what it lacks only.
        self.versions = dict.fromkeys(
            ("metrics", "stages", "episodes", "log", "answers", "checkpoints"), 0
        )
        self._tails = {
            name: RowsTail(path, name)
            for name in (
                "metrics.jsonl",
                "episodes.jsonl",
                "evals.jsonl",
                "heartbeat.jsonl",
                ANSWERS,
            )
        }
        self._resets = dict.fromkeys(self._tails, 0)
        self._listed: tuple[Any, ...] = ()

    def refresh(self) -> None:
        """Reads what is new."""
        with self.lock:
            self._metrics()
            self._episodes()
            self._evals()
            for row in self._rows("heartbeat.jsonl"):
                self.heartbeat = row
            answers = self._rows(ANSWERS)
            if answers:
                self.answers.extend(answers)
                self.versions["answers"] += 1
            if self.log.read():
                self.versions["log"] += 1
            self._list_files()

    def _rows(self, name: str) -> list[dict[str, Any]]:
        return self._tails[name].read()

    def _was_reset(self, name: str) -> bool:
        resets = self._tails[name].resets
        changed = resets != self._resets[name]
        self._resets[name] = resets
        return changed

    def _metrics(self) -> None:
        before = self.metrics.version
        rows = self._rows("metrics.jsonl")
        if self._was_reset("metrics.jsonl"):
            self.metrics.clear()
        self.metrics.add(row for row in rows if "update" in row)
        self.versions["metrics"] += self.metrics.version != before

    def _episodes(self) -> None:
        rows = self._rows("episodes.jsonl")
        if self._was_reset("episodes.jsonl"):
            self.stages.clear()
            self.stages.evaluated(self.evals)
        if rows:
            self.stages.add(rows)
            self.versions["episodes"] += 1
            self.versions["stages"] += 1

    def _evals(self) -> None:
        rows = self._rows("evals.jsonl")
        if not rows:
            return
        newest = rows[-1].get("global_step")
        if self.evals and self.evals[-1].get("global_step") == newest:
            rows = self.evals + rows
        self.evals = [row for row in rows if row.get("global_step") == newest]
        self.stages.evaluated(self.evals)
        self.versions["stages"] += 1

    def _list_files(self) -> None:
        listed = (
            _listing(self.path / "checkpoints", (".json",)),
            _listing(self.path, (".safetensors",)),
            _listing(self.path / "videos", VIDEOS),
            _listing(self.path, VIDEOS),
        )
        if listed == self._listed:
            return
        self._listed = listed
        inside, outside, videos, best = listed
        newest = sorted(inside, key=lambda item: -item[2])[:MOST_CHECKPOINTS]
        rows = [_checkpoint(self.path / "checkpoints", *item) for item in newest]
        rows = [row for row in rows if not row["name"].endswith("_latest.json")]
        self.checkpoints = [*rows, *(_checkpoint(self.path, *item) for item in outside)]
        self.video_paths = {name: self.path / name for name, _, _ in best}
        self.video_paths |= {name: self.path / "videos" / name for name, _, _ in videos}
        rows = [_checkpoint(self.path, *item) for item in (*best, *videos)]
        self.videos = sorted(rows, key=lambda row: -row["time"])
        self.versions["checkpoints"] += 1


def run_state(path: Path) -> dict[str, Any]:
    """What the run is doing: running, paused, ended, silent, and what it was last told."""
    told = read_json(path / FOLDER / STATE)
    newest = max((_time(path / name) for name in ("metrics.jsonl", "heartbeat.jsonl")), default=0.0)
    newest = max(newest, _time(path / FOLDER / STATE))
    age = time.time() - newest if newest else None
    doing = str(told.get("doing", ""))
    if doing != "ended" and (age is None or age > LIVE_FOR):
        doing = "silent"
    overrides = told.get("overrides")
    return {
        "doing": doing or "running",
        "paused": bool(told.get("paused")) and doing == "paused",
        "reason": str(told.get("reason", "")),
        "obeys": bool(told) and doing not in ("ended", "silent"),
        "overrides": overrides if isinstance(overrides, dict) else {},
        "age": None if age is None else round(age),
    }


def read_json(path: Path) -> dict[str, Any]:
    """A small JSON object; empty if there is none."""
    try:
        if path.stat().st_size > MOST_JSON:
            return {}
        value = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _listing(folder: Path, kinds: tuple[str, ...]) -> list[tuple[str, int, float]]:
    found = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if path.suffix in kinds and not path.name.startswith(".") and not path.is_symlink():
                with contextlib.suppress(OSError):
                    seen = path.stat()
                    found.append((path.name, seen.st_size, seen.st_mtime))
    return sorted(found)


def _checkpoint(folder: Path, name: str, size: int, when: float) -> dict[str, Any]:
    """What a file of weights, or the side-car of a checkpoint, says about itself."""
    row: dict[str, Any] = {"name": name, "bytes": size, "time": when}
    if name.endswith(".json"):
        said = read_json(folder / name)
        state, files = said.get("save_state"), said.get("files")
        if isinstance(state, dict):
            row |= {key: state.get(key) for key in ("global_update", "global_step", "reason")}
        if isinstance(files, dict):
            parts = [part.get("bytes") for part in files.values() if isinstance(part, dict)]
            row["bytes"] += sum(part for part in parts if isinstance(part, int))
    return row
