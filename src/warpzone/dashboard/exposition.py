"""The newest numbers of all runs as text for Prometheus (`/metrics`, off unless asked for)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warpzone.metrics import schema
from warpzone.run.names import ALERTS, HEARTBEAT, METRICS
from warpzone.run.reader import RunReader

TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "warpzone_"
#: Runs that are shown, the newest first: every one costs a look at its files.
MOST_RUNS = 50
#: Fields of a row with a stage in their name become one metric with a label.
STAGES = {"clear_rate_{W}_{S}": "stage_clear_rate", "stage_share_{W}_{S}": "stage_share"}
ABOUT = {
    "exposition_seconds": "Seconds it took to read the runs.",
    "run_live": "1 while a process writes to the run.",
    "run_age_seconds": "Seconds since the run wrote anything.",
    "run_max_steps": "Steps after which the run ends.",
    "idle_seconds": "Seconds without progress, at the last heartbeat.",
    "last_alert_timestamp_seconds": "Unix time of the newest alert, by its kind.",
    "stage_clear_rate": "Share of flags in the last 100 episodes of a stage.",
    "stage_share": "Chance with which a stage is drawn.",
}

Sample = tuple[dict[str, str], float]


class Exposition:
    """Collects samples of runs, and writes them metric by metric."""

    def __init__(self) -> None:
        self._samples: dict[str, list[Sample]] = {}

    def add(self, path: Path, config: dict[str, Any]) -> None:
        """The newest numbers of a run."""
        reader, name = RunReader(path), path.name
        state = reader.state()
        self.put("run_live", state["doing"] not in ("ended", "silent"), run=name)
        self.put("run_age_seconds", state["age"], run=name)
        self.put("run_max_steps", config.get("max_steps"), run=name)
        beat = reader.last_row(HEARTBEAT, "idle_seconds")
        self.put("idle_seconds", beat.get("idle_seconds"), run=name)
        alert = reader.last_row(ALERTS, "kind")
        kind = str(alert.get("kind"))[:40]
        self.put("last_alert_timestamp_seconds", alert.get("timestamp"), run=name, kind=kind)
        for field, value in reader.last_row(METRICS, "update").items():
            self._field(field, value, name)

    def _field(self, name: str, value: Any, run: str) -> None:
        field = schema.find(name)
        if field is None:
            return
        if field.name in STAGES:
            stage = name.removeprefix(field.name.partition("{")[0]).replace("_", "-")
            self.put(STAGES[field.name], value, run=run, stage=stage)
        else:
            self.put(name, value, run=run)

    def put(self, metric: str, value: Any, **labels: str) -> None:
        """A sample; what is no finite number is left out."""
        if isinstance(value, int | float) and abs(value) < 2**1000 and math.isfinite(value):
            self._samples.setdefault(metric, []).append((labels, float(value)))

    def text(self) -> str:
        """All of them, in the text format."""
        lines: list[str] = []
        for metric in sorted(self._samples):
            field = schema.find(metric)
            about = ABOUT.get(metric) or (field.meaning if field is not None else "")
            about = about.replace("\\", "\\\\").replace("\n", " ")
            lines += [f"# HELP {PREFIX}{metric} {about}", f"# TYPE {PREFIX}{metric} gauge"]
            for labels, value in self._samples[metric]:
                said = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
                lines.append(f"{PREFIX}{metric}{f'{{{said}}}' if said else ''} {value!r}")
        return "\n".join(lines) + "\n"


def expose(runs: Iterable[tuple[Path, dict[str, Any]]]) -> str:
    """The text about some runs, each with its configuration."""
    began = time.perf_counter()
    exposition = Exposition()
    for path, config in runs:
        exposition.add(path, config)
    exposition.put("exposition_seconds", time.perf_counter() - began)
    return exposition.text()


def _escaped(text: str) -> str:
    """A label's value. Names of runs may hold bytes that are no text."""
    plain = text.encode(errors="replace").decode()
    return plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
