"""One reader for all browsers: data that several of them show is read and reduced once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Protocol

import numpy as np

from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.messages import Curves, Part, packed
from warpzone.dashboard.rundata import RunData
from warpzone.dashboard.wall_file import WallFile
from warpzone.maps.events import read_restarts
from warpzone.run.reader import RunReader

#: Seconds between two polls of watched runs, of the list of runs, and of walls.
REFRESH, SCAN, WALL = 1.0, 2.0, 0.25
MOST_CACHED = 512


class Viewer(Protocol):
    """A browser, as the hub sees it."""

    runs: tuple[str, ...]
    wall: bool
    screens: bool

    def wake(self) -> None:
        """There may be news."""


class Hub:
    """Keeps watched runs up to date and answers questions about them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        self.viewers: set[Viewer] = set()
        self.walls: dict[str, WallFile] = {}
        #: Goes up when files were looked at.
        self.looks = 0
        self._cache: OrderedDict[Hashable, Any] = OrderedDict()
        self._refreshing = asyncio.Lock()

    async def work(self) -> None:
        """Runs until it is cancelled."""
        scanned = refreshed = -SCAN
        clock = asyncio.get_running_loop().time
        while True:
            now = clock()
            if now - scanned >= SCAN:
                self.catalogue.adopt(await asyncio.to_thread(self.catalogue.scan))
                scanned = now
            if now - refreshed >= REFRESH:
                await self.refresh({run for viewer in self.viewers for run in viewer.runs})
                refreshed = now
                self.looks += 1
            await asyncio.to_thread(self._look_at_walls)
            for viewer in tuple(self.viewers):
                viewer.wake()
            walls = any(viewer.wall and viewer.runs for viewer in self.viewers)
            await asyncio.sleep(WALL if walls else REFRESH)

    async def refresh(self, runs: set[str]) -> None:
        """Brings runs up to date, one after the other."""
        async with self._refreshing:
            for run in runs:
                data = self.catalogue.get(run)
                if data is not None:
                    await asyncio.to_thread(data.refresh)

    def _look_at_walls(self) -> None:
        looking = [viewer for viewer in tuple(self.viewers) if viewer.wall and viewer.runs]
        wanted = {viewer.runs[0] for viewer in looking}
        screens = {viewer.runs[0] for viewer in looking if viewer.screens}
        for run in wanted:
            path = self.catalogue.paths.get(run)
            if path is not None:
                wall = self.walls.setdefault(run, WallFile(path))
                # A run that has ended is not read again.
                if RunReader(path).state()["obeys"]:
                    wall.want(screens=run in screens)
                wall.read()
        for run in [run for run in self.walls if run not in wanted]:
            del self.walls[run]

    # --- answers --------------------------------------------------------------------------------
    async def news(self, runs: tuple[str, ...]) -> dict[str, Any]:
        """What changed, in short: a page asks for the parts whose version it does not have."""
        if not runs:
            return {"type": "news", "runs": self.catalogue.rows, "watched": []}
        found = [(run, self.catalogue.get(run)) for run in runs]
        # In a thread: a run that is being read for the first time is locked for a while.
        watched = await asyncio.to_thread(
            lambda: [_watched(run, data) for run, data in found if data is not None]
        )
        return {"type": "news", "runs": self.catalogue.rows, "watched": watched}

    async def curves(self, asked: Curves) -> bytes:
        """Curves as a binary message."""
        header: list[dict[str, Any]] = []
        payload: list[bytes] = []
        for run in asked.runs:
            data = self.catalogue.get(run)
            if data is None:
                continue
            for name in asked.names:
                x, y = await self._curve(run, data, name, asked)
                if len(x):
                    header.append({"run": run, "name": name, "count": len(x) // 8})
                    payload += [x, y]
        message = {"type": "curves", "request": asked.request, "curves": header}
        return packed(message, b"".join(payload))

    async def _curve(
        self, run: str, data: RunData, name: str, asked: Curves
    ) -> tuple[bytes, bytes]:
        table, axis = data.metrics, asked.axis
        key = (run, id(data), table.version, name, axis, asked.low, asked.high, asked.points)

        def work() -> tuple[bytes, bytes]:
            with data.lock:
                x, y = table.curve(name, axis, asked.low, asked.high, asked.points)
            return x.astype(np.float64).tobytes(), y.astype(np.float64).tobytes()

        found: tuple[bytes, bytes] = await self._cached(key, work)
        return found

    async def part(self, asked: Part) -> dict[str, Any] | None:
        """A part of a run; None if there is no such run."""
        data = self.catalogue.get(asked.run)
        if data is None:
            return None
        if data.metrics.count == 0:
            await self.refresh({asked.run})
        return await asyncio.to_thread(_part, data, asked, self.catalogue)

    async def _cached(self, key: Hashable, work: Callable[[], Any]) -> Any:
        if key not in self._cache:
            self._cache[key] = await asyncio.to_thread(work)
            while len(self._cache) > MOST_CACHED:
                self._cache.popitem(last=False)
        return self._cache[key]


def _watched(run: str, data: RunData) -> dict[str, Any]:
    with data.lock:
        return {
            "id": run,
            "versions": dict(data.versions),
            "last": data.metrics.last(),
            "heartbeat": data.heartbeat,
            "hint": data.hint,
            "alert": data.alert,
            "rows": data.metrics.count,
            "episodes": data.stages.total,
            "state": data.reader.state(),
        }


def _part(data: RunData, asked: Part, catalogue: Catalogue) -> dict[str, Any]:
    with data.lock:
        return _locked_part(data, asked, catalogue)


def _locked_part(data: RunData, asked: Part, catalogue: Catalogue) -> dict[str, Any]:
    if asked.what == "names":
        return {"metrics": data.metrics.names()}
    if asked.what == "config":
        return {"config": catalogue.config(data.path)}
    if asked.what == "stages":
        return {"stages": data.stages.grid(), "step": _evaluated_at(data)}
    if asked.what == "ends":
        stage = asked.stage or "1-1"
        restarts = [[one.x, one.y, *one.area, one.share] for one in read_restarts(data.path, stage)]
        return {**data.stages.ends(stage), "restarts": restarts}
    if asked.what == "episodes":
        rows = [row for row in data.stages.episodes if row["number"] > asked.after]
        return {"episodes": rows, "total": data.stages.total}
    if asked.what == "log":
        first = max(0, asked.after - data.log.start)
        return {"lines": data.log.lines[first:], "next": data.log.start + len(data.log.lines)}
    if asked.what == "checkpoints":
        return {"checkpoints": data.checkpoints, "videos": data.videos}
    if asked.what == "events":
        return {"events": [row for rows in data.events.values() for row in rows]}
    return {"answers": list(data.answers)}


def _evaluated_at(data: RunData) -> Any:
    return data.evals[-1].get("global_step") if data.evals else None
