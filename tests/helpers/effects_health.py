"""Observables of a run's health: what is raised about it, and what its monitor tells."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from effects import config_of
from tiny_runs import CPU

from warpzone.health.alerts import GIB, Alerts
from warpzone.health.pulse import Pulse
from warpzone.observers import health as healths


def alerts(**changes: Any) -> list[list[str]]:
    """What is raised about a run that loses a step and half of its clears, on a full disk."""
    clock = iter(range(10_000))
    reader = Alerts(config_of(**changes), lambda: 0.5 * GIB, lambda: float(next(clock)))
    row: dict[str, Any] = {"update": 1, "episodes_completed": 500, "gpu_util_mean_window": 5.0}
    raised = []
    for second in range(12):
        row |= {"seconds": 100.0 + second, "updates_skipped": second, "clear_rate": 0.5}
        row |= {"clear_rate": 1.0} if second < 6 else {}
        raised.append([alert.text for alert in reader.read(row)])
    return raised


def gpu_use(**changes: Any) -> list[float]:
    """Mean and peak of a GPU's use over a run that is looked at four times."""
    looks = iter((90.0, 10.0, 20.0, 30.0))
    gpu: Any = SimpleNamespace(look=lambda: {"gpu_util_last": next(looks)}, close=lambda: None)
    config = config_of(**{"monitor_interval": 600.0, **changes})
    run: Any = SimpleNamespace(pulse=Pulse(), device=CPU)
    with patch.object(healths, "find_gpu", lambda device: (gpu, "")):
        observer = healths.HealthObserver(config.replace(heartbeat_interval=0.0))
        observer.started(run)
    row: dict[str, Any] = {"update": 1, "seconds": 1.0}
    if observer._monitor is not None:
        for _ in range(3):
            observer._monitor.look()
    observer.updated(run, row, None)  # type: ignore[arg-type]
    observer.ended(run, "normal")
    return [row.get(f"gpu_util_{name}_window", 0.0) for name in ("mean", "max")]
