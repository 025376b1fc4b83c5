"""A run holds on to nothing that each update, evaluation or checkpoint makes."""

import gc
from collections import Counter
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from observed_runs import learn
from tiny_runs import tiny

from warpzone.collect import episodes
from warpzone.collect.collector import Collected
from warpzone.eval.evaluate import evaluate
from warpzone.observers.make import make_observers
from warpzone.observers.observer import Observer
from warpzone.observers.progress import Progress
from warpzone.train import evaluator
from warpzone.train.loop import Run

#: Updates before the first count, in which windows and caches fill; counts; updates from one to the
#: next.
FIRST, COUNTS, BETWEEN = 8, 4, 8


class Counted(Observer):
    """Counts the objects of the process, by type, now and then."""

    def __init__(self) -> None:
        self.counts: list[Counter[type]] = []

    def between(self, run: Any, progress: Progress) -> None:
        if run.global_update >= FIRST and (run.global_update - FIRST) % BETWEEN == 0:
            gc.collect()
            self.counts.append(Counter(map(type, gc.get_objects())))


class Leaked:
    """Of a type of its own: nobody else makes or frees one while it is counted."""


class Keeper(Observer):
    """A leak of one small object for each update."""

    def __init__(self) -> None:
        self.kept: list[Leaked] = []

    def updated(self, run: Any, row: dict[str, Any], collected: Collected) -> None:
        self.kept.append(Leaked())


def growth(folder: Path, *more: Observer, **changes: Any) -> dict[str, int]:
    """Types of which there were more at each count, by one for two updates at the least. Other
    threads are in the middle of something at any count, and some things are loaded late: neither
    goes on."""
    config = tiny(
        episode_window=4,
        runs_dir=str(folder),
        max_steps=32 * (FIRST + (COUNTS - 1) * BETWEEN),
        enable_tensorboard=True,
        parquet_interval=0.05,
        monitor_interval=0.05,
        heartbeat_interval=0.05,
        metrics_rotate_mb=0.01,
        checkpoint_interval=1,
        **changes,
    )
    counted = Counted()
    learn(Run(config, [*make_observers(config), *more, counted]))
    assert len(counted.counts) == COUNTS
    least = {
        kind.__qualname__: min(
            after[kind] - before[kind] for before, after in pairwise(counted.counts)
        )
        for kind in counted.counts[-1]
    }
    return {name: more for name, more in least.items() if more >= BETWEEN // 2}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept on purpose is full at the first count; evaluations are short."""
    monkeypatch.setattr(episodes, "STAGE_WINDOW", 2)
    monkeypatch.setattr(evaluator, "evaluate", partial(evaluate, delays=(0, 1), stuck_after=2))


@pytest.mark.parametrize(
    "changes",
    [
        {"eval_interval": 64},
        {"algo": "vtrace", "per": True, "per_memory_gb": 0.001, "per_segments": 4},
        {"archive_share": 0.5, "archive_size": 4, "archive_cell": 8, "overlap_collect": True},
    ],
    ids=["evaluations", "replay", "archive"],
)
def test_nothing_grows_with_updates(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert growth(tmp_path, **changes) == {}


def test_a_leak_would_be_seen(tmp_path: Path) -> None:
    assert growth(tmp_path, Keeper())["Leaked"] == BETWEEN
