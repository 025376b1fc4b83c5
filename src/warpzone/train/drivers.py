"""Two drivers of updates: serial, the reference, and overlapped, which is faster."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import torch

from warpzone.collect.collector import Collected

if TYPE_CHECKING:
    from warpzone.observers.progress import Progress
    from warpzone.train.loop import Run

#: Switch interval of Python's threads: the collector must not wait for the learner's launches.
SWITCH_SECONDS = 5e-5


class Driver(ABC):
    """Makes the updates of a run until it is done."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @abstractmethod
    def drive(self, progress: Progress) -> None:
        """Updates until the run is done."""

    @property
    @abstractmethod
    def ahead(self) -> bool:
        """Whether a rollout for a later update is in progress."""

    @abstractmethod
    def rest(self) -> None:
        """Waits for the rollout in progress."""

    def play(self) -> Collected:
        """A rollout of the newest policy."""
        collected = self._run.collector.play(self.hand_over())
        self._run.policies.take_noise()
        return collected

    def hand_over(self) -> int:
        """Before a rollout: updates weights, noise and lane settings. Returns the updates that
        the policy has learned from."""
        run = self._run
        run.policies.hand_over()
        run.collector.prepare(run.global_step)
        return run.global_update


class Serial(Driver):
    """Collects, then learns from what was collected."""

    @property
    def ahead(self) -> bool:
        return False

    def rest(self) -> None:
        pass

    def drive(self, progress: Progress) -> None:
        while not self._run.done():
            self._run.update(self.play, progress)


class Overlapped(Driver):
    """The next rollout is collected while the last one is learned from: the policy that plays is
    one update behind."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self._coming: Future[Collected] | None = None
        # Graphs are recorded before anything overlaps, because recording allows no other work on
        # the device; the learner has one for each of the collector's two stores.
        recording = 2 if run.device.type == "cuda" and run.config.graphs else 0
        self._alone_until = run.global_update + recording

    @property
    def ahead(self) -> bool:
        return self._coming is not None

    def rest(self) -> None:
        if self._coming is not None:
            self._coming.exception()  # Raised again where the rollout is taken.

    def drive(self, progress: Progress) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        with ThreadPoolExecutor(1, thread_name_prefix="collector") as thread:
            while self.ahead or not self._run.done():
                self._run.update(lambda: self._take(thread), progress)

    def hand_over(self) -> int:
        version = super().hand_over()
        if self._run.device.type == "cuda":
            # The collector works on a stream of its own, and must see all of this completed.
            torch.cuda.synchronize()
        return version

    def _take(self, thread: ThreadPoolExecutor) -> Collected:
        """The rollout that was collected meanwhile; the next one begins."""
        run = self._run
        if self._coming is None:
            collected = self.play()
        else:
            collected, self._coming = self._coming.result(), None
            run.policies.take_noise()
        recorded = run.global_update >= self._alone_until
        if recorded and not run.done(ahead=1) and not self._pausing():
            self._coming = thread.submit(run.collector.play, self.hand_over())
        return collected

    def _pausing(self) -> bool:
        """whether the current update is followed by an evaluation or a checkpoint, or by an
        observer that needs `between`: then no rollout is in progress, and a checkpoint is
        complete."""
        run = self._run
        coming = run.global_step + run.config.steps_per_update
        due = run.evaluator.due(coming) or run.saver.due(run.global_update + 1)
        return due or run.rest_wanted
