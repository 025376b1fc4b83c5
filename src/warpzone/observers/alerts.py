"""Raises alerts: into the log, into `alerts.jsonl` for the dashboard, and to a webhook."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

from warpzone.config import TrainConfig
from warpzone.health.alerts import Alert, Alerts
from warpzone.learn.learner import LearningError, NotFiniteError
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.journal import say
from warpzone.run.names import ALERTS

if TYPE_CHECKING:
    from warpzone.collect.collector import Collected
    from warpzone.health.webhook import Webhook


class AlertObserver(Observer):
    """Comes after the observers that add to a row. Nothing here may end or slow a run."""

    def __init__(self, config: TrainConfig, webhook: Webhook | None = None) -> None:
        self._alerts = Alerts(config, self._free)
        self._webhook = webhook
        self._run: ObservedRun | None = None
        self._left = float("inf")

    def started(self, run: ObservedRun) -> None:
        self._run = run

    def updated(self, run: ObservedRun, row: dict[str, Any], collected: Collected) -> None:
        for alert in self._alerts.read(row):
            self._raise(alert)

    def failed(self, run: ObservedRun, error: LearningError) -> None:
        """The update that failed has no row, so that it is said here."""
        if isinstance(error, NotFiniteError) and (alert := self._alerts.last(str(error))):
            self._raise(alert)

    def stalled(self, text: str) -> None:
        """Called by the thread that looks for stalls."""
        if self._alerts.due("stall"):
            self._raise(Alert("stall", text))

    def state_dict(self) -> dict[str, Any]:
        return self._alerts.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._alerts.load_state_dict(state)

    def _raise(self, alert: Alert) -> None:
        say(f"[train][alert] {alert.kind}: {alert.text}")
        run = self._run
        if run is None:
            return
        about = {"update": run.global_update, "global_step": run.global_step}
        run.pulse.message = f"alert: {alert.text}"
        row = {"timestamp": time.time(), "kind": alert.kind, "text": alert.text, **about}
        try:
            run.folder.append(ALERTS, [row])
        except OSError as error:
            say(f"[train][warn] the alert is not in {ALERTS}: {error}")
        if self._webhook is not None:
            name = run.folder.path.name
            self._webhook.send("alert", f"{name}: {alert.text}", run=name, kind=alert.kind, **about)

    def _free(self) -> float:
        """Bytes left; as many as at the last look where the folder cannot be looked at."""
        if self._run is not None:
            try:
                self._left = shutil.disk_usage(self._run.folder.path).free
            except OSError:
                return self._left
        return self._left
