"""The list of runs. A browser identifies a run by an id made here, never by a path."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from warpzone.dashboard import trend
from warpzone.dashboard.rundata import RunData
from warpzone.dashboard.tail import slim
from warpzone.run.names import CONFIG, EVALS, METRICS, VERSIONS
from warpzone.run.opening import read_json
from warpzone.run.reader import RunReader, runs_in

#: Runs whose numbers are kept in memory.
MOST_OPEN = 8
#: Runs that are listed, newest first.
MOST_LISTED = 500
#: Bytes of a configuration, which has some KiB; those of all runs are kept.
MOST_CONFIG = 1 << 16
SHOWN = (
    "stages",
    "algo",
    "num_envs",
    "max_steps",
    "max_time",
    "entropy",
    "lr",
    "memory",
    "seed",
    "frame_skip",
)


class Listing(NamedTuple):
    """Where runs are, by id, and what a list of them shows."""

    paths: dict[str, Path]
    rows: list[dict[str, Any]]


class Catalogue:
    """The runs below a folder, or the one run that the folder is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: dict[str, Path] = {}
        self.rows: list[dict[str, Any]] = []
        self._open: OrderedDict[str, RunData] = OrderedDict()
        #: Content of each file at its last change.
        self._known: dict[tuple[Path, str], tuple[tuple[int, int], dict[str, Any]]] = {}

    def scan(self) -> Listing:
        """Searches again, in a thread that may wait for the disk; `adopt` applies the result."""
        found = []
        for path in runs_in(self.folder):
            try:
                found.append((path.stat().st_mtime, path))
            except OSError:
                continue
        found.sort(key=lambda item: -item[0])
        paths = {run_id(path): path for _, path in found[:MOST_LISTED]}
        rows = [self._row(name, path) for name, path in paths.items()]
        there = set(paths.values())
        # A copy: another thread may be looking up a configuration.
        known = tuple(self._known.items())
        self._known = {key: row for key, row in known if key[0].parent in there}
        return Listing(paths, rows)

    def adopt(self, listing: Listing) -> None:
        """Applies the result of a search."""
        self.paths, self.rows = listing
        for name in [name for name in self._open if name not in self.paths]:
            del self._open[name]

    def get(self, name: str) -> RunData | None:
        """The run with this id, if the last look found one."""
        path = self.paths.get(name)
        if path is None:
            return None
        data = self._open.get(name)
        if data is None:
            data = self._open[name] = RunData(path)
        self._open.move_to_end(name)
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
        return data

    def _row(self, name: str, path: Path) -> dict[str, Any]:
        config = self.config(path)
        reader = RunReader(path)
        last = self._read(path / METRICS, lambda: slim(reader.last_row(METRICS, "update")))
        stages = str(config.get("stages", ""))
        state = reader.state()
        return {
            "id": name,
            "name": path.name,
            "state": state["doing"],
            "obeys": state["obeys"],
            "config": slim({key: config[key] for key in SHOWN if key in config}),
            "step": last.get("global_step"),
            "speed": last.get("env_steps_per_sec"),
            "clear_rate": last.get("clear_rate"),
            "seconds": last.get("seconds"),
            "trend": [],
            **self._read(path / METRICS, lambda: trend.trend(path), "trend"),
            "best": None,
            "best_of": None,
            **self._read(path / EVALS, lambda: trend.best(path, stages), "best"),
            "device": None,
            **self._read(path / VERSIONS, lambda: trend.device(path)),
        }

    def config(self, path: Path) -> dict[str, Any]:
        """The configuration of a run, as the last look found it."""
        return self._read(path / CONFIG, lambda: read_json(path, CONFIG, MOST_CONFIG))

    def _read(
        self, path: Path, read: Callable[[], dict[str, Any]], what: str = ""
    ) -> dict[str, Any]:
        """What is in a file, or `what` of it; read again only when it has changed."""
        try:
            seen = path.stat()
        except OSError:
            return {}
        changed = seen.st_mtime_ns, seen.st_size
        known = self._known.get((path, what))
        if known is None or known[0] != changed:
            known = self._known[path, what] = changed, read()
        return known[1]


def run_id(path: Path) -> str:
    """The same after a restart, so that a page finds its run again."""
    return hashlib.sha256(path.name.encode(errors="replace")).hexdigest()[:16]
