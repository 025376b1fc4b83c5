"""Alerts: what should bring somebody to look at a run, by thresholds on its metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from warpzone.config.health import HealthConfig
from warpzone.health.hints import WARM

GIB = 2**30
#: Seconds between two looks at the disk.
LOOK = 10.0
#: Episodes before a clear rate means something.
EPISODES = 100


class Alert(NamedTuple):
    """One alert."""

    #: stall, nan, clear-rate, disk or gpu-idle.
    kind: str
    text: str


class Alerts:
    """Reads rows, one for each update. The same kind is raised again after `--alert-cooldown`
    seconds at the earliest."""

    def __init__(
        self,
        config: HealthConfig,
        free: Callable[[], float],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """free: bytes left on the disk of the run."""
        self.config = config
        self._free = free
        self._now = now
        self._raised: dict[str, float] = {}
        self._looked = -LOOK
        #: Optimiser steps left out until the last update; None if that is not known.
        self._skipped: float | None = None
        #: The highest clear rate since the last alert about it.
        self.best = 0.0

    def read(self, row: dict[str, Any]) -> list[Alert]:
        """Alerts of this update; nearly always none."""
        found = (self._nan(row), self._clear_rate(row), self._disk(), self._gpu(row))
        return [alert for alert in found if alert is not None and self.due(alert.kind)]

    def last(self, text: str) -> Alert | None:
        """The alert of a run that ends because losses or gradients were not finite. There is no
        later update to say it at, so it does not wait for the cooldown."""
        wanted = self.config.alert_cooldown > 0 and self.config.alert_skipped > 0
        return Alert("nan", text) if wanted else None

    def state_dict(self) -> dict[str, float]:
        """What a resumed run compares with."""
        known = {} if self._skipped is None else {"skipped": self._skipped}
        return {"best": self.best, **known}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores `state_dict`; what was not saved is not known."""
        self.best = float(state.get("best", 0.0))
        self._skipped = float(state["skipped"]) if "skipped" in state else None

    def due(self, kind: str) -> bool:
        """Whether an alert of this kind may be raised now; from then on it counts as raised."""
        if self.config.alert_cooldown == 0:
            return False
        now, last = self._now(), self._raised.get(kind)
        if last is not None and now - last < self.config.alert_cooldown:
            return False
        self._raised[kind] = now
        return True

    def _nan(self, row: dict[str, Any]) -> Alert | None:
        limit, total = self.config.alert_skipped, row.get("updates_skipped") or 0.0
        before, self._skipped = self._skipped, total
        if before is None:
            # What a resumed run left out earlier is no news; a fresh one left out nothing.
            before = 0.0 if row["update"] == 1 else total
        skipped = total - before
        if limit == 0 or skipped < limit:
            return None
        return Alert(
            "nan",
            f"{skipped:.0f} optimiser steps of update {row['update']} were left out: their loss or "
            "gradient was not finite",
        )

    def _clear_rate(self, row: dict[str, Any]) -> Alert | None:
        rate, drop = row.get("clear_rate"), self.config.alert_clear_drop
        if rate is None or (row.get("episodes_completed") or 0) < EPISODES:
            return None
        self.best = max(self.best, rate)
        if drop == 0 or self.best - rate < drop:
            return None
        best, self.best = self.best, rate
        return Alert("clear-rate", f"the clear rate fell from {best:.1%} to {rate:.1%}")

    def _disk(self) -> Alert | None:
        least = self.config.alert_disk_gb
        if least == 0 or self._now() - self._looked < LOOK:
            return None
        self._looked = self._now()
        left = self._free() / GIB
        if left >= least:
            return None
        return Alert("disk", f"{left:.2f} GiB are left on the disk of the run")

    def _gpu(self, row: dict[str, Any]) -> Alert | None:
        used, least = row.get("gpu_util_mean_window"), self.config.alert_gpu_idle
        if used is None or used >= least or row["seconds"] < WARM:
            return None
        return Alert("gpu-idle", f"the GPU was busy {used:.0f} % of the time")
