"""Adaptive schedules: up on a plateau, down on progress, inside their bounds, and off unless asked
for."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import learn, same, tiny

from warpzone.config import ConfigError
from warpzone.learn.adaptive import Adaptive

SETTINGS: dict[str, Any] = {
    "adaptive": True,
    "adaptive_window": 4,
    "adaptive_cooldown": 3,
    "adaptive_step": 2.0,
}


def feed(adaptive: Adaptive, returns: Sequence[float], clear_rate: float = 0.0) -> list[float]:
    """The factor on the entropy bonus after each update."""
    factors = []
    for value in returns:
        summary = {"avg_return": value, "recent_return_std": 1.0, "clear_rate": clear_rate}
        adaptive.observe(summary)
        factors.append(adaptive.entropy_scale)
    return factors


def test_a_plateau_raises_exploration_step_by_step_to_its_bound() -> None:
    adaptive = Adaptive(tiny(**SETTINGS))
    factors = feed(adaptive, [5.0] * 14)
    assert factors == [1, 1, 1, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4]
    assert adaptive.lr_scale == 2.0  # Its bound is lower.
    assert adaptive.state == 1


def test_progress_tightens() -> None:
    adaptive = Adaptive(tiny(**SETTINGS))
    feed(adaptive, [5.0] * 7)
    assert feed(adaptive, [6.0, 7.0, 8.0])[-1] == 2.0
    assert adaptive.state == 2
    feed(adaptive, range(9, 40))
    assert (adaptive.entropy_scale, adaptive.lr_scale) == (0.25, 0.25)


def test_a_rising_clear_rate_is_progress() -> None:
    adaptive = Adaptive(tiny(**SETTINGS))
    for clear_rate in (0.1, 0.1, 0.2, 0.2):
        feed(adaptive, [5.0], clear_rate)
    assert adaptive.state == 2
    solved = Adaptive(tiny(**SETTINGS))
    feed(solved, [5.0] * 4, clear_rate=0.95)
    assert (solved.state, solved.entropy_scale) == (2, 0.5)


def test_a_decline_slows_learning_and_leaves_exploration() -> None:
    adaptive = Adaptive(tiny(**SETTINGS))
    feed(adaptive, [5.0, 5.0, 2.0, 2.0])
    assert (adaptive.state, adaptive.entropy_scale, adaptive.lr_scale) == (-1, 1.0, 0.5)


def test_off_by_default() -> None:
    adaptive = Adaptive(tiny())
    feed(adaptive, [5.0] * 200)
    assert (adaptive.entropy_scale, adaptive.lr_scale) == (1.0, 1.0)
    assert adaptive.metrics() == {}


def test_updates_without_a_finished_episode_say_nothing() -> None:
    adaptive = Adaptive(tiny(**SETTINGS))
    for _ in range(20):
        adaptive.observe({"env_distance_delta_sum": 3.0})
    assert adaptive.state == 0


def test_a_saved_state_goes_on_as_if_nothing_had_happened() -> None:
    returns = [5.0, 5.0, 5.0, 5.1, 5.0, 7.0, 9.0, 9.0, 9.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    whole = feed(Adaptive(tiny(**SETTINGS)), returns)
    for cut in range(len(returns)):
        first, second = Adaptive(tiny(**SETTINGS)), Adaptive(tiny(**SETTINGS))
        before = feed(first, returns[:cut])
        second.load_state_dict(first.state_dict())
        assert before + feed(second, returns[cut:]) == whole


def test_a_state_from_wider_bounds_is_brought_inside() -> None:
    wide = Adaptive(tiny(**SETTINGS, adaptive_entropy_max=64.0))
    feed(wide, [5.0] * 60)
    assert wide.entropy_scale == 64.0
    narrow = Adaptive(tiny(**SETTINGS))
    narrow.load_state_dict(wide.state_dict())
    assert narrow.entropy_scale == 4.0


def test_factors_reach_the_learner(tmp_path: Path) -> None:
    # Short episodes go nowhere at first: the factors move, and the row says by how much.
    settings = {**SETTINGS, "adaptive_cooldown": 0, "adaptive_window": 2}
    adapted, shown = learn(tmp_path / "on", max_steps=320, lr=0.01, **settings)
    plain, quiet = learn(tmp_path / "off", max_steps=320, lr=0.01)
    assert "adaptive_lr_scale" not in quiet.rows[-1]
    factors = [row["adaptive_lr_scale"] for row in shown.rows]
    assert len(set(factors)) > 1
    for with_factor, without in zip(shown.rows, quiet.rows, strict=True):
        expected = without["entropy_bonus"] * with_factor["adaptive_entropy_scale"]
        assert with_factor["entropy_bonus"] == pytest.approx(expected)
        expected = without["learning_rate"] * with_factor["adaptive_lr_scale"]
        assert with_factor["learning_rate"] == pytest.approx(expected)
    assert not same(adapted.agent, plain.agent)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"adaptive_step": 1.0}, "--adaptive-step is a factor above 1"),
        ({"adaptive_window": 1}, "--adaptive-window must be at least 2"),
        ({"adaptive_lr_min": 1.5}, "must have 1, the schedule itself, between them"),
        ({"adaptive_entropy_max": 0.5}, "must have 1, the schedule itself, between them"),
        ({"fail_on_stall": True, "stall_timeout": 0.0}, "--fail-on-stall needs a --stall-timeout"),
        ({"monitor_interval": -1.0}, "--monitor-interval must be at least 0"),
        ({"step_timeout": 0.0}, "--step-timeout must be above 0"),
    ],
)
def test_nonsense_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        tiny(**changes)
