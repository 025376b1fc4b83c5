"""Evaluations of runs that are interrupted: each is made and written down once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import Recorder, tiny

from warpzone.config import TrainConfig
from warpzone.eval.evaluate import Outcome
from warpzone.run.reader import read_rows
from warpzone.run.resume import find_start
from warpzone.train import evaluator
from warpzone.train.loop import Run
from warpzone.train.saving import Saver
from warpzone.train.stopping import Interrupted, Stop

OUTCOME = {
    "stage": "1-1", "start_delay": 0, "cleared": True, "furthest_x": 3161, "steps": 400,
    "time_left": 300, "episode_return": 9.0, "reason": "flag",
}  # fmt: skip


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What happens in each evaluation before it gives its result."""
    plan: list[Callable[[], None]] = []

    def evaluate(*_: Any, each_step: Callable[[], None]) -> list[Outcome]:
        if plan:
            plan.pop(0)()
        each_step()
        return [Outcome(policy=policy, **OUTCOME) for policy in ("argmax", "sampled")]  # type: ignore[arg-type]

    monkeypatch.setattr(evaluator, "evaluate", evaluate)
    return plan


def settings(folder: Path, **changes: Any) -> TrainConfig:
    values = {"max_steps": 4 * 32, "eval_interval": 64, "run_name": "one", "resume": "auto"}
    return tiny(runs_dir=str(folder), **{**values, **changes})


def life(config: TrainConfig, stop: Stop | None = None) -> Run:
    run = Run(config, start=find_start(config, print), interrupt=stop)
    run.train(Recorder())  # type: ignore[arg-type]
    return run


def evaluated(folder: Path) -> list[int]:
    return [row["global_step"] for row in read_rows(folder / "one", "evals.jsonl")]


def test_interrupted_while_it_evaluates(
    tmp_path: Path, evaluations: list[Callable[[], None]]
) -> None:
    stop = Stop()
    evaluations.append(lambda: setattr(stop, "signum", 15))
    with pytest.raises(Interrupted) as caught:
        life(settings(tmp_path), stop)
    assert caught.value.exit_code == 143
    assert evaluated(tmp_path) == []
    run = life(settings(tmp_path))
    assert evaluated(tmp_path) == [64, 64, 128, 128]
    assert (run.evaluator.best_clears, run.evaluator.best_update) == (1, 2)
    # The run is over: taken up again it knows its result and plays nothing.
    evaluations.append(lambda: pytest.fail("evaluated again"))
    again = life(settings(tmp_path))
    assert [outcome.cleared for outcome in again.outcomes] == [True, True]
    assert evaluated(tmp_path) == [64, 64, 128, 128]


def test_killed_between_the_evaluation_and_its_checkpoint(
    tmp_path: Path, evaluations: list[Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(self: Saver, *_: Any, **__: Any) -> None:
        raise OSError("no more")

    with monkeypatch.context() as patch:
        patch.setattr(Saver, "save", dies)
        with pytest.raises(OSError, match="no more"):
            life(settings(tmp_path))
    assert evaluated(tmp_path) == [64, 64]
    life(settings(tmp_path))
    assert evaluated(tmp_path) == [64, 64, 128, 128]


def test_another_interval_begins_with_its_next_multiple(
    tmp_path: Path, evaluations: list[Callable[[], None]]
) -> None:
    life(settings(tmp_path, eval_interval=0, max_steps=96))
    life(settings(tmp_path, eval_interval=64, max_steps=192))
    assert evaluated(tmp_path) == [96, 96, 128, 128, 192, 192]
    assert not evaluations


def test_an_interval_shorter_than_an_update_leaves_nothing_behind(
    tmp_path: Path, evaluations: list[Callable[[], None]]
) -> None:
    """What goes on in a new folder begins with an update, not with an evaluation that was made."""
    life(settings(tmp_path, eval_interval=10))
    assert sorted({*evaluated(tmp_path)}) == [32, 64, 96, 128]
    other = settings(tmp_path / "other", eval_interval=10, max_steps=5 * 32)
    life(other.replace(resume=str(tmp_path / "one")))
    assert sorted({*evaluated(tmp_path / "other")}) == [160]
