"""What a sweep has spent, and which of its trials count."""

from datetime import datetime, timedelta
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

from optuna.trial import FrozenTrial, TrialState  # noqa: E402

from warpzone.search.budget import Account, Caps  # noqa: E402

NOW = datetime(2026, 1, 1, 12, 0)


def trial(number: int, state: str, begin: float, end: float | None, **attrs: Any) -> FrozenTrial:
    """Times are minutes after NOW."""
    history = attrs.pop("again", [])
    return FrozenTrial(
        number=number,
        state=TrialState[state],
        value=1.0 if state == "COMPLETE" else None,
        datetime_start=NOW + timedelta(minutes=begin),
        datetime_complete=None if end is None else NOW + timedelta(minutes=end),
        params={},
        distributions={},
        user_attrs=attrs,
        system_attrs={"retry_history": history, "failed_trial": history[0]} if history else {},
        intermediate_values={},
        trial_id=number,
    )


ACCOUNT = Account(
    [
        trial(0, "COMPLETE", 0, 10, steps=100, gpu_seconds=360),
        trial(1, "FAIL", 5, 12, steps=30),
        trial(2, "PRUNED", 40, 45, steps=20, gpu_seconds=36),
        trial(3, "RUNNING", 50, None, steps=7, again=[1]),
        trial(4, "FAIL", 51, 51, surplus=True),
        trial(5, "WAITING", 51, 51, steps=20, gpu_seconds=36, surplus=True),
    ]
)


def test_steps_time_and_gpu_hours_are_those_of_all_trials() -> None:
    assert ACCOUNT.steps == 157
    assert ACCOUNT.gpu_hours == pytest.approx(0.11)
    # 0 to 12, 40 to 45 and 50 to now: breaks do not count, and trials side by side count once.
    assert ACCOUNT.minutes(NOW + timedelta(minutes=60)) == pytest.approx(27.0)


def test_trials_count_once() -> None:
    assert [found.number for found in ACCOUNT.counted] == [0, 2, 3]
    assert (ACCOUNT.ended, ACCOUNT.running, ACCOUNT.waiting) == (2, 1, True)


@pytest.mark.parametrize(
    ("caps", "said"),
    [
        (Caps(), ""),
        (Caps(steps=158), ""),
        (Caps(steps=157), "157 of 157 steps are spent"),
        (Caps(minutes=27.5), ""),
        (Caps(minutes=26.5), "its 26.5 minutes are over"),
        (Caps(gpu_hours=0.2), ""),
        (Caps(gpu_hours=0.1), "0.11 of 0.1 GPU hours are spent"),
    ],
)
def test_limits(caps: Caps, said: str) -> None:
    assert ACCOUNT.exceeded(caps, NOW + timedelta(minutes=60)) == said
