"""The data of a run's folder, read once for a report."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpzone.eval.cases import BASELINES, usual_start
from warpzone.run import rows
from warpzone.run.names import CONFIG, EPISODES, EVALS, EVALUATION, METRICS, VERSIONS
from warpzone.run.reader import RunReader

#: Largest number of training episodes and updates in a report, spread over the run.
MOST_EPISODES, MOST_METRICS = 20_000, 50_000
#: Rows of evaluations, the newest: a thousand evaluations of one stage have 62,000.
MOST_EVALS = 300_000
#: Bytes of a separate evaluation: some 200 for each episode.
MOST_EVALUATION = 64 << 20


@dataclass(frozen=True)
class Point:
    """One evaluation of one policy."""

    global_step: int
    seconds: float
    clears: int
    episodes: int

    @property
    def rate(self) -> float:
        return self.clears / self.episodes if self.episodes else 0.0


@dataclass(frozen=True)
class RunData:
    """A run as a report needs it."""

    name: str
    path: Path
    config: dict[str, Any]
    metrics: list[dict[str, Any]]
    evals: list[dict[str, Any]]
    episodes: list[dict[str, Any]]
    versions: dict[str, Any] = field(default_factory=dict)
    #: Rows of a separate evaluation, if there is one, and of its baselines.
    evaluation: list[dict[str, Any]] = field(default_factory=list)
    baselines: list[dict[str, Any]] = field(default_factory=list)

    def curve(self, name: str) -> list[tuple[float, float]]:
        """A metric over steps, where it has a number."""
        return [
            (float(row["global_step"]), float(row[name]))
            for row in self.metrics
            if row.get(name) is not None and row.get("global_step") is not None
        ]

    def points(self, policy: str, stage: str | None = None) -> list[Point]:
        """The evaluations of one policy, in the order of training."""
        grouped: dict[int, list[dict[str, Any]]] = {}
        for row in self.evals:
            if row.get("policy") == policy and stage in (None, row.get("stage")):
                grouped.setdefault(row.get("global_step", 0), []).append(row)
        return [
            Point(
                step,
                float(rows[0].get("seconds", 0.0)),
                sum(bool(row.get("cleared")) for row in rows),
                len(rows),
            )
            for step, rows in sorted(grouped.items())
        ]

    def best_rows(self) -> list[dict[str, Any]]:
        """The rows of the evaluation that cleared the most with argmax; a separate evaluation
        takes the place of those of training."""
        if self.evaluation:
            return self.evaluation
        points = self.points("argmax")
        if not points:
            return self.evals
        best = max(points, key=lambda point: (point.clears, point.global_step))
        return [row for row in self.evals if row.get("global_step") == best.global_step]

    def last(self, name: str) -> Any:
        """The newest value of a metric, None without one."""
        return next(
            (row[name] for row in reversed(self.metrics) if row.get(name) is not None), None
        )


def read_run(path: Path) -> RunData:
    """Reads a run's folder, of a live run as far as it is written."""
    reader = RunReader(path).require()
    document = reader.document(EVALUATION, MOST_EVALUATION)
    told = document.get("episodes") if usual_start(document) else None
    evaluation = rows.episodes(told if isinstance(told, list) else [])
    return RunData(
        name=path.resolve().name,
        path=path,
        config=reader.document(CONFIG),
        metrics=[rows.numbers(row) for row in reader.rows(METRICS, MOST_METRICS)],
        evals=rows.episodes(reader.newest_rows(EVALS, MOST_EVALS)),
        episodes=rows.episodes(reader.rows(EPISODES, MOST_EPISODES)),
        versions=reader.document(VERSIONS),
        evaluation=[row for row in evaluation if row.get("policy") not in BASELINES],
        baselines=[row for row in evaluation if row.get("policy") in BASELINES],
    )


def told_apart(runs: Sequence[RunData]) -> list[RunData]:
    """Runs of the same name, from several folders, by as much of their paths as it takes."""
    names = Counter(run.name for run in runs)
    return [
        run if names[run.name] == 1 else dataclasses.replace(run, name=_longer(run, runs))
        for run in runs
    ]


def _longer(run: RunData, runs: Sequence[RunData]) -> str:
    parts = run.path.resolve().parts
    others = [other.path.resolve().parts for other in runs if other is not run]
    for length in range(1, len(parts)):
        if all(other[-length:] != parts[-length:] for other in others):
            return "/".join(parts[-length:])
    raise ValueError(f"{run.path} is named twice")


@functools.cache
def defaults() -> dict[str, Any]:
    """The default configuration; made once, so nobody may change it."""
    from warpzone.config import TrainConfig

    return dataclasses.asdict(TrainConfig())
