"""The health of a run as one observer: monitor, heartbeat, stalls, slow steps and hints."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psutil

from warpzone.config import TrainConfig
from warpzone.health.heartbeat import Heartbeat
from warpzone.health.hints import Hints
from warpzone.health.monitor import Monitor, ProcessHealth, find_gpu
from warpzone.health.slow_steps import SlowSteps
from warpzone.health.stacks import dump
from warpzone.health.stall import Stall
from warpzone.health.ticker import FAILURES, Ticker, why
from warpzone.learn.learner import LearningError
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.journal import say
from warpzone.run.names import HEARTBEAT

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected
    from warpzone.eval.evaluate import Outcome
    from warpzone.observers.progress import Progress

#: Phase in the last line of heartbeat.jsonl. The last checkpoint tells the two apart.
LAST = {"normal": "done", "exception": "interrupt"}
#: Of the newest row: what heartbeats of a run with actors tell.
FLEET = ("policy_lag", "lag_p50", "lag_max", "actors_present", "actors_lost")
#: Polls of the pulse within one --stall-timeout.
LOOKS = 10


class HealthObserver(Observer):
    """Two threads, one for the machine and one for the pulse, so that a driver that hangs does
    not block stall detection."""

    def __init__(
        self,
        config: TrainConfig,
        stalled: Callable[[str], None] = lambda text: None,
        beaten: Callable[[dict[str, Any]], None] = lambda row: None,
    ) -> None:
        """stalled: called with one sentence for each stall; beaten: called with each heartbeat.
        Both by other threads."""
        self.config = config
        self._beaten = beaten
        self._stalled = stalled
        self._hints = Hints(config)
        self._monitor: Monitor | None = None
        self._heartbeat: Heartbeat | None = None
        self._stall: Stall | None = None
        self._process = ProcessHealth()
        self._tickers: list[Ticker] = []
        self._fleet: dict[str, float] = {}

    def started(self, run: ObservedRun) -> None:
        config, pulse = self.config, run.pulse
        if config.slow_step_trace_threshold:
            slow = SlowSteps(config, lambda cause: self._dump(run, "slow_step_trace", cause))
            pulse.on_step = slow.add
        if config.monitor_interval:
            gpu, problem = find_gpu(run.device)
            if problem:
                say(f"[train][warn] {problem}")
            self._monitor = Monitor(gpu, config.gpu_window)
            self._monitor.look()
            self._tick("monitor", config.monitor_interval, self._monitor.look)
        if config.heartbeat_interval:
            self._heartbeat = Heartbeat(
                pulse,
                lambda: (run.global_update, run.global_step),
                lambda row: self._write(run, row),
                self._health,
            )
            self._heartbeat.beat("start")
            self._tick("heartbeat", config.heartbeat_interval, self._heartbeat.beat)
        if config.stall_timeout:
            self._stall = Stall(config, pulse, lambda cause: self._report_stall(run, cause))
            self._tick("stall", config.stall_timeout / LOOKS, self._stall.look)

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        if self._monitor is not None:
            row.update(self._monitor.fields())
        self._fleet = {name: row[name] for name in FLEET if name in row}
        for sentence in self._hints.read(row):
            run.pulse.message = f"hint: {sentence}"
            say(f"[train][hint] {sentence}")

    def between(self, run: ObservedRun, progress: Progress) -> None:
        self._end_if_stalled()

    def evaluated(self, run: ObservedRun, outcomes: list[Outcome]) -> None:
        # Nothing else writes after the last evaluation.
        self._end_if_stalled()

    def _end_if_stalled(self) -> None:
        if self._stall is not None and self._stall.verdict:
            raise LearningError(self._stall.verdict)

    def ended(self, run: ObservedRun, reason: str) -> None:
        for ticker in self._tickers:
            ticker.close()
        run.pulse.phase = LAST.get(reason, reason)
        run.pulse.on_step = None
        if self._heartbeat is not None:
            try:
                self._heartbeat.beat()
            except FAILURES as error:
                say(f"[train][warn] the last heartbeat was not written: {why(error)}")
        if self._monitor is not None:
            self._monitor.close()

    def _write(self, run: ObservedRun, row: dict[str, Any]) -> None:
        run.folder.append(HEARTBEAT, [row])
        self._beaten(row)

    def _health(self) -> dict[str, float]:
        """The monitor's last GPU sample: a heartbeat never calls the driver. Of actors, what the
        newest update said."""
        known = dict(self._fleet)
        if self._monitor is not None:
            known |= self._monitor.gpu_fields()
        try:
            return {**self._process.look_at_all(), **known}
        except psutil.Error:
            # A child that ends right now, or a system that does not report it.
            return known

    def _tick(self, name: str, interval: float, call: Any) -> None:
        def failed(error: Exception) -> None:
            say(f"[train][warn] the {name} stopped: {why(error)}")

        self._tickers.append(Ticker(name, interval, call, failed))

    def _report_stall(self, run: ObservedRun, cause: str) -> None:
        self._dump(run, "stall", cause)
        self._stalled(cause)

    def _dump(self, run: ObservedRun, stem: str, cause: str) -> None:
        try:
            where = f"stacks in {dump(run.folder.path, stem, cause)}"
        except OSError as error:
            where = f"stacks not written: {error}"
        run.pulse.message = cause
        say(f"[train][warn] {cause}; {where}")
