"""Lanes of other back-ends for training, with the interface of the engine's lanes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from warpzone.collect import lanes as native
from warpzone.collect.ranks import ALONE, Ranks
from warpzone.config import TrainConfig
from warpzone.config.backend import BackendConfig, ram_address
from warpzone.config.outside import check_backend
from warpzone.env.backends.events import Event, say
from warpzone.env.backends.interface import Lanes, RamX
from warpzone.env.backends.opening import RomFile, make_spec, open_lanes
from warpzone.env.backends.worker_lanes import WorkerSettings

if TYPE_CHECKING:
    from warpzone import _engine


RESTARTS = "env_worker_restarts"
#: Events that wait for somebody who takes them.
MOST_EVENTS = 10_000


class BackendGroup(native.LaneGroup):
    """A group with its own waiting thread. Its lanes cannot be saved: after a resume their
    episodes start again."""

    def __init__(
        self,
        backend: Lanes,
        driver: ThreadPoolExecutor,
        lanes: slice,
        *,
        first: int | None = None,
        pinned: bool,
    ) -> None:
        # It has the methods of the engine's vector that training uses.
        super().__init__(cast("_engine.Vector", backend), lanes, first=first, pinned=pinned)
        self.backend = backend
        self._thread = driver
        self._step: Future[None] | None = None

    def start(self, actions: NDArray[np.int64]) -> None:
        """Begins a step."""
        self._step = self._thread.submit(self.backend.step, actions, *self._results())

    def finish(self) -> None:
        """Waits for the step; raises an error of the back-end."""
        if self._step is None:
            raise RuntimeError("no step is under way")
        step, self._step = self._step, None
        step.result()

    def close(self) -> None:
        """Ends the step under way, and the lanes."""
        if self._step is not None:
            self._step.exception()
            self._step = None
        super().close()

    def save(self) -> list[bytes]:
        """One empty state for each lane."""
        return [b""] * self.count

    def load(self, states: Sequence[bytes]) -> None:
        """Always refused, so that all episodes start again."""
        raise ValueError("games of other back-ends than the native one cannot be saved")


class BackendGroups(native.Lanes):
    """All groups, the threads that wait for them, and the ROM's file."""

    def __init__(
        self,
        groups: Sequence[BackendGroup],
        driver: ThreadPoolExecutor,
        file: RomFile,
        rom: bytes,
        events: Events,
    ) -> None:
        super().__init__(groups, rom)
        self._events = events
        self._thread = driver
        self._backends = [group.backend for group in groups]
        self._file = file

    def counters(self) -> dict[str, float]:
        """Counters of handled failures, over all groups."""
        restarts = [backend.counters().get(RESTARTS, 0) for backend in self._backends]
        return {RESTARTS: float(sum(restarts))}

    def take_events(self) -> list[dict[str, Any]]:
        """Events of construction and of lost workers since the last call."""
        return self._events.take()

    def close(self) -> None:
        """Ends the steps under way, every worker and every thread."""
        super().close()
        self._thread.shutdown()
        self._file.close()


class Events:
    """Events of all groups, from any thread, until they are taken."""

    def __init__(self) -> None:
        self._rows: deque[dict[str, Any]] = deque(maxlen=MOST_EVENTS)

    def add(self, event: Event) -> None:
        """Says and keeps an event."""
        say(event)
        self._rows.append(event.row())

    def take(self) -> list[dict[str, Any]]:
        """Those since the last call."""
        return [self._rows.popleft() for _ in range(len(self._rows))]


def worker_settings(config: BackendConfig) -> WorkerSettings:
    """How workers are started and how long they may take."""
    return WorkerSettings(
        start_method=config.env_start_method,
        start_delay=config.worker_start_delay,
        reset_timeout=config.env_reset_timeout,
        step_timeout=config.env_step_timeout,
        prewarm=config.parent_prewarm,
        prewarm_all=config.parent_prewarm_all,
        folder=config.env_diag_dir,
    )


def make_backend_groups(
    config: TrainConfig, rom: bytes, *, pinned: bool, ranks: Ranks = ALONE
) -> BackendGroups:
    """The run's lanes, or this rank's of them. Each group has a thread that waits for it, so all
    groups can play."""
    check_backend(config)
    driver = ThreadPoolExecutor(config.groups, thread_name_prefix="backend")
    file = RomFile(rom)
    ram_x = RamX(
        config.enable_ram_x_parse,
        ram_address(config.ram_x_high_addr),
        ram_address(config.ram_x_low_addr),
    )
    groups: list[BackendGroup] = []
    events = Events()
    with ExitStack() as undo:
        undo.callback(file.close)
        undo.callback(driver.shutdown)
        for lanes, numbers in native.group_lanes(config, ranks):
            options = native.lane_options(config)
            options = replace(options, stages=native.lane_stages(config, numbers))
            spec = make_spec(
                config.backend,
                file,
                options,
                lanes.stop - lanes.start,
                ram_x=ram_x,
                before=numbers.start,
                total=config.num_envs,
            )
            backend = open_lanes(
                spec, worker_settings(config), sync=config.force_sync, report=events.add
            )
            group = BackendGroup(backend, driver, lanes, first=numbers.start, pinned=pinned)
            undo.callback(group.close)
            groups.append(group)
            group.reset(native.lane_seeds(config.seed, numbers))
        undo.pop_all()
    return BackendGroups(groups, driver, file, rom, events)
