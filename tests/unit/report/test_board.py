"""The board shows what was played, and leaves the rest empty."""

from pathlib import Path
from typing import Any

from warpzone.report.board import board
from warpzone.report.charts import STRANGE
from warpzone.report.data import RunData


def row(stage: str, policy: str, step: int, cleared: bool, x: int = 700) -> dict[str, Any]:
    return {"stage": stage, "policy": policy, "global_step": step, "cleared": cleared, "x": x}


def made(**changes: Any) -> str:
    values: dict[str, Any] = {"config": {}, "metrics": [], "evals": [], "episodes": []}
    return board(RunData(name="one", path=Path("one"), **{**values, **changes}))


def test_a_run_without_episodes_is_untouched() -> None:
    text = made()
    assert text.count("not played") == 32
    assert "hsl(" not in text
    assert "%" not in text


def test_rate_trend_and_place() -> None:
    evals = [
        *(row("1-1", "argmax", 1, False, x) for x in (700, 710, 90, 80)),
        *(row("1-1", "argmax", 2, cleared) for cleared in (True, True, True, False)),
        row("1-1", "sampled", 2, True, 0),
    ]
    text = made(evals=evals)
    assert text.count("not played") == 31
    assert "1-1: argmax 3 of 4, sampled 1 of 1; most fail at x 640" in text
    assert ">75%<" in text
    assert text.count("<polyline") == 1


def test_a_stage_of_training_shows_its_episodes_from_the_door() -> None:
    episodes = [
        {"stage": 1, "reason": "flag", "furthest_x": 3000, "restart": 7},
        {"stage": 1, "reason": "death", "furthest_x": 300, "restart": 0},
        {"stage": 1, "reason": "flag", "furthest_x": 3000},
        {"stage": 99, "reason": "flag", "furthest_x": 3000},
        {"stage": 2, "reason": "flag", "furthest_x": 3000, "restart": 7},
    ]
    text = made(episodes=episodes)
    assert "1-2: 1 of the newest 2 training episodes; most fail at x 256" in text
    assert text.count("not played") == 31


def test_a_stage_that_was_never_trained_on_is_not_red() -> None:
    evals = [row("1-1", "argmax", 1, False)]
    evaluation = [row("1-1", "argmax", 1, False), row("8-4", "argmax", 1, False)]
    text = made(evals=evals, evaluation=evaluation)
    assert "8-4: argmax 0 of 1; not trained on; most fail at x 640" in text
    assert text.count(STRANGE) == 1
    assert text.count("hsl(0 ") == 1


def test_only_sampled_is_its_own_rate() -> None:
    text = made(evals=[row("1-1", "sampled", 1, True)])
    assert ">100%<" in text
