"""Lanes in worker processes, one each. A worker that dies, hangs or fails is replaced: that costs
the episode of its lane, which ends truncated, and nothing else.

Gymnasium's `AsyncVectorEnv` raises when a worker is gone and cannot start another; that is why this
exists. The environments themselves work in Gymnasium's vector environments too (`env.py`).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpzone import _engine
from warpzone.env.backends import events
from warpzone.env.backends.base_lanes import BackendLanes
from warpzone.env.backends.diagnostics import Diagnostics, last_marker, new_folder
from warpzone.env.backends.events import Event, Report, say
from warpzone.env.backends.interface import (
    Actions,
    BackendError,
    BackendSpec,
    Bools,
    Bytes,
    Floats,
    Ints,
)
from warpzone.env.backends.select import check_installed, prewarm
from warpzone.env.backends.shared_rows import SharedRows
from warpzone.env.backends.worker import Assignment
from warpzone.env.backends.worker_process import WorkerLost, WorkerProcess, first_to_answer
from warpzone.env.rewards import SHAPING_FIELDS

#: Workers that may fail one after another in a lane before the lane is given up.
MAX_FAILURES = 3
SHAPING = len(SHAPING_FIELDS)


@dataclass(frozen=True)
class WorkerSettings:
    """How workers are started and how long they may take."""

    #: `auto` is forkserver, or spawn where there is none.
    start_method: str = "auto"
    #: Seconds between the starts of two workers.
    start_delay: float = 0.2
    #: Seconds to make an environment and reset it.
    reset_timeout: float = 120.0
    step_timeout: float = 60.0
    prewarm: bool = False
    prewarm_all: bool = False
    #: Where diagnostics are kept; empty is a temporary folder, removed when nothing failed.
    folder: str = ""


def start_method(wanted: str) -> str:
    """The method asked for, or the safest that there is: a plain fork copies threads' locks."""
    known = multiprocessing.get_all_start_methods()
    if wanted != "auto":
        if wanted not in known:
            raise BackendError(f"this system starts processes by {', '.join(known)}, not {wanted}")
        return wanted
    return next(method for method in ("forkserver", "spawn") if method in known)


class WorkerLanes(BackendLanes):
    """The lanes of a spec, each in a process of its own."""

    def __init__(
        self,
        spec: BackendSpec,
        settings: WorkerSettings | None = None,
        report: Report = say,
    ) -> None:
        super().__init__(spec)
        self._settings = settings or WorkerSettings()
        self._told = report
        check_installed(spec.backend, spec.digest)
        if self._settings.prewarm or self._settings.prewarm_all:
            prewarm(spec, self._settings.prewarm_all)
        self._context = multiprocessing.get_context(start_method(self._settings.start_method))
        self._rows = SharedRows.make(self._context, self.num_lanes, self.obs_shape)
        self._arrays = self._rows.arrays()
        self._seeds = [0] * self.num_lanes
        self._restarts = 0
        self._failures = [0] * self.num_lanes
        #: Calls that changed how lanes play, repeated to workers that come later.
        self._orders: dict[str, tuple[Any, ...]] = {}
        self.folder = new_folder(self._settings.folder)
        self._keep = bool(self._settings.folder)
        self._workers: dict[int, WorkerProcess] = {}
        self._construct()

    def _construct(self) -> None:
        self._note(f"before_construct {self._spec.backend} x {self.num_lanes}")
        with ExitStack() as undo:
            undo.callback(self.close, keep=True)
            for lane in range(self.num_lanes):
                self._report(events.constructing(self._spec.env(lane), self._spec.of))
                self._workers[lane] = self._start(lane, lane * self._settings.start_delay)
            self._wait_for_all()
            undo.pop_all()
        self._note("after_construct")

    def _wait_for_all(self) -> None:
        """Workers take turns to load the ROM, so the time limit is for the next one of them to be
        ready, however many there are."""
        limit = self._settings.reset_timeout + self._settings.start_delay
        waiting = set(range(self.num_lanes))
        while waiting:
            heard = first_to_answer([self._workers[lane] for lane in sorted(waiting)], limit)
            for lane in [worker.index for worker in heard] or sorted(waiting):
                self._ready(lane, time.monotonic())
                waiting.remove(lane)

    def _note(self, marker: str) -> None:
        path = self.folder / f"create_vector_env_pid{os.getpid()}.log"
        with path.open("a", encoding="utf-8") as file:
            Diagnostics(file, self.folder).mark(marker)

    def _report(self, event: Event) -> None:
        self._told(event)
        # A full disk for temporary files is no reason to end a run.
        with contextlib.suppress(OSError):
            events.append(self.folder, event)

    def _start(self, lane: int, delay: float) -> WorkerProcess:
        work = Assignment(self._spec.only(lane), lane, str(self.folder), self._rows, delay)
        return WorkerProcess(self._context, work)

    def _ready(self, lane: int, deadline: float) -> None:
        """Waits for a new worker; one that cannot be had is tried again some times."""
        while True:
            worker = self._workers[lane]
            try:
                shape = worker.answer(deadline, "construction")
            except WorkerLost as lost:
                self._lost(lane, lost)
                self._workers[lane] = self._start(lane, 0.0)
                deadline = time.monotonic() + self._settings.reset_timeout
                continue
            number, seconds = self._spec.env(lane), time.monotonic() - worker.began
            self._report(events.ready(number, self._spec.of, seconds))
            if tuple(shape) != self.obs_shape:
                raise BackendError(f"env {number} observes {tuple(shape)}, not {self.obs_shape}")
            return

    def _lost(self, lane: int, lost: WorkerLost) -> None:
        """Notes the loss, and gives up a lane that loses worker after worker."""
        self._keep = True
        self._restarts += 1
        self._failures[lane] += 1
        marker = last_marker(self.folder, lane)
        telling = marker.startswith("failed") or "construction" in str(lost)
        where = f"; its last marker is {marker!r}" if marker and telling else ""
        text = f"{lost}{where}; diagnostics are in {self.folder}"
        number = self._spec.env(lane)
        self._report(Event("lost", text, number, self._spec.of))
        if self._failures[lane] >= MAX_FAILURES:
            raise BackendError(
                f"{MAX_FAILURES} workers of env {number} in a row were lost, the last because "
                f"{lost}; diagnostics are in {self.folder}"
            ) from lost

    def _replace(self, lane: int, lost: WorkerLost) -> None:
        """A new worker, reset, that plays by the orders given so far."""
        while True:
            self._lost(lane, lost)
            self._workers[lane] = self._start(lane, 0.0)
            self._ready(lane, time.monotonic() + self._settings.reset_timeout)
            # Not the stream from its beginning: that would play the first episodes again.
            self._seeds[lane] = _engine.next_seed(self._seeds[lane])
            try:
                for order, values in self._orders.items():
                    self._call(lane, order, values)
                self._call(lane, "seed", ([self._seeds[lane]],))
                self._call(lane, "reset", None)
            except WorkerLost as again:
                lost = again
                continue
            return

    def _call(self, lane: int, command: str, value: Any) -> Any:
        self._workers[lane].ask(command, value)
        return self._workers[lane].answer(self._deadline(command), command)

    def _deadline(self, command: str) -> float:
        slow = command == "reset"
        limit = self._settings.reset_timeout if slow else self._settings.step_timeout
        return time.monotonic() + limit

    def seed(self, seeds: Sequence[int | None]) -> None:
        """One 64-bit seed for each lane; None leaves its random stream as it is."""
        for lane, seed in enumerate(seeds):
            if seed is not None:
                self._seeds[lane] = seed
                self._tell([lane], "seed", ([seed],))

    def _begin_all(self, lanes: Sequence[int]) -> None:
        self._each(lanes, "reset", None)

    def _shown(self) -> tuple[Bytes, Ints]:
        return self._arrays["obs"], self._arrays["info"]

    def step(
        self,
        actions: Actions,
        obs: Bytes,
        reward: Floats,
        terminated: Bools,
        truncated: Bools,
        info: Ints,
        final_obs: Bytes | None,
        final_info: Ints | None,
    ) -> None:
        """One step of every lane, all at the same time."""
        self._check_actions(actions)
        # What a lane whose worker is lost showed last is where its episode ends.
        last_obs, last_info = self._arrays["obs"].copy(), self._arrays["info"].copy()
        lost = self._each(range(self.num_lanes), "step", [int(action) for action in actions])
        shared = self._arrays
        for lane in lost:
            shared["reward"][lane] = 0.0
            shared["terminated"][lane], shared["truncated"][lane] = False, True
            shared["final_obs"][lane], shared["final_info"][lane] = last_obs[lane], last_info[lane]
        for name, out in (
            ("obs", obs),
            ("reward", reward),
            ("terminated", terminated),
            ("truncated", truncated),
            ("info", info),
            ("final_obs", final_obs),
            ("final_info", final_info),
        ):
            if out is not None:
                out[:] = shared[name]

    def _each(self, lanes: Sequence[int], command: str, value: Any) -> list[int]:
        """Asks some workers at once. Returns the lanes whose worker had to be replaced."""
        lost: dict[int, WorkerLost] = {}
        for lane in lanes:
            try:
                self._workers[lane].ask(command, value[lane] if command == "step" else value)
            except WorkerLost as gone:
                lost[lane] = gone
        deadline = self._deadline(command)
        for lane in lanes:
            if lane in lost:
                continue
            try:
                self._workers[lane].answer(deadline, command)
            except WorkerLost as gone:
                lost[lane] = gone
            else:
                self._failures[lane] = 0
        for lane, loss in lost.items():
            self._replace(lane, loss)
        return sorted(lost)

    def _tell(self, lanes: Sequence[int], command: str, value: Any) -> list[Any]:
        """Answers of some workers between two steps, None of one that is lost: the next step
        finds it gone, ends its episode and replaces it."""
        answers: list[Any] = []
        for lane in lanes:
            try:
                answers.append(self._call(lane, command, value))
            except WorkerLost:
                answers.append(None)
        return answers

    def _order(self, name: str, *values: Any) -> None:
        self._orders[name] = values
        self._tell(range(self.num_lanes), name, values)

    def set_reward_weights(self, weights: _engine.RewardWeights) -> None:
        """Rewards of the steps from now on."""
        self._order("set_reward_weights", weights)

    def set_stage_weights(self, weights: Sequence[float]) -> None:
        """Of the 32 stages, for all draws from now on; empty is all alike."""
        self._order("set_stage_weights", list(weights))

    def set_script(self, masks: bytes) -> None:
        """Buttons that every episode starts with from now on; empty is none."""
        self._order("set_script", masks)

    def force(self, lanes: Sequence[int], masks: bytes) -> None:
        """Buttons that some lanes press from now on, whatever their actions are."""
        self._tell([int(lane) for lane in lanes], "force", ([0], masks))

    def take_shaping(self) -> list[float]:
        """Sums over all lanes since the last call, in the engine's order."""
        answers = self._tell(range(self.num_lanes), "take_shaping", ())
        each = [answer for answer in answers if answer is not None]
        return [float(sum(values)) for values in zip(*each, strict=True)] or [0.0] * SHAPING

    def ram(self, lanes: Sequence[int]) -> Bytes:
        """Copies of the RAM of some lanes."""
        return np.concatenate([self._call(lane, "ram", ([0],)) for lane in lanes])

    def pids(self) -> list[int]:
        """The process of each lane."""
        return [self._workers[lane].pid for lane in range(self.num_lanes)]

    def counters(self) -> dict[str, int]:
        """Workers that were replaced."""
        return {"env_worker_restarts": self._restarts}

    def close(self, *, keep: bool = False) -> None:
        """Ends all workers. Closing twice does no harm. keep: their diagnostics stay anyway."""
        while self._workers:
            self._workers.popitem()[1].close()
        if not (keep or self._keep) and self.folder.exists():
            shutil.rmtree(self.folder)
