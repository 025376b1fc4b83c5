"""Alerts: what raises one, and how often."""

from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.health.alerts import EPISODES, GIB, LOOK, Alerts
from warpzone.health.hints import WARM

FINE: dict[str, Any] = {
    "update": 1, "seconds": 2 * WARM, "updates_skipped": 0.0, "clear_rate": 0.8,
    "episodes_completed": EPISODES, "gpu_util_mean_window": 90.0,
}  # fmt: skip


class Watched:
    """Alerts of a run on a disk with so many GiB, and a clock."""

    def __init__(self, **changes: Any) -> None:
        self.left, self.time = 100.0, 0.0
        self.alerts = Alerts(tiny(**changes), lambda: self.left * GIB, lambda: self.time)

    def __call__(self, **row: Any) -> list[str]:
        self.time += 1.0
        return [alert.kind for alert in self.alerts.read({**FINE, **row})]


def test_nothing_is_raised_while_all_is_well() -> None:
    watched = Watched()
    assert [kind for _ in range(50) for kind in watched()] == []


def test_steps_that_were_not_finite() -> None:
    watched = Watched(alert_skipped=2, alert_cooldown=1.0)
    assert watched(update=4, updates_skipped=9.0) == []  # Of before a resume.
    assert watched(updates_skipped=10.0) == []
    assert watched(updates_skipped=12.0) == ["nan"]
    assert watched(updates_skipped=12.0) == []
    assert Watched(alert_skipped=0)(updates_skipped=99.0) == []


def test_the_first_update_of_a_fresh_run_is_not_a_baseline() -> None:
    assert Watched(alert_skipped=2)(updates_skipped=2.0) == ["nan"]
    assert Watched(alert_skipped=2)(updates_skipped=1.0) == []


def test_a_resumed_run_compares_with_what_was_saved() -> None:
    first, second = Watched(), Watched()
    assert first.alerts.state_dict() == {"best": 0.0}  # No update yet: nothing is known.
    first(updates_skipped=9.0)
    second.alerts.load_state_dict(first.alerts.state_dict())
    assert second.alerts.state_dict() == {"best": 0.8, "skipped": 9.0}
    assert second(update=2, updates_skipped=9.0) == []
    second.alerts.load_state_dict(first.alerts.state_dict())
    assert second(update=2, updates_skipped=10.0) == ["nan"]
    # Of a checkpoint that an earlier version wrote.
    second.alerts.load_state_dict({"best": 0.5})
    assert second.alerts.state_dict() == {"best": 0.5}


def test_the_alert_of_a_run_that_ends_does_not_wait() -> None:
    watched = Watched(alert_cooldown=500.0)
    assert watched(updates_skipped=3.0) == ["nan"]
    assert watched.alerts.last("not finite") == ("nan", "not finite")
    for off in ({"alert_cooldown": 0.0}, {"alert_skipped": 0}):
        assert Watched(**off).alerts.last("not finite") is None


def test_a_falling_clear_rate_and_once_more_when_it_falls_further() -> None:
    watched = Watched(alert_clear_drop=0.25, alert_cooldown=1.0)
    rates = [0.5, 0.8, 0.6, 0.5, 0.4, 0.3, 0.25]
    assert [watched(clear_rate=rate) for rate in rates] == [
        [], [], [], ["clear-rate"], [], [], ["clear-rate"],
    ]  # fmt: skip
    few = Watched(alert_clear_drop=0.25)
    assert few(clear_rate=1.0, episodes_completed=3) == []
    assert few(clear_rate=0.0) == []


def test_the_disk_is_looked_at_now_and_then() -> None:
    watched = Watched(alert_disk_gb=2.0, alert_cooldown=1.0)
    assert watched() == []
    watched.left = 1.9
    raised = [watched() for _ in range(int(LOOK))]
    assert raised == [[]] * (int(LOOK) - 1) + [["disk"]]
    off = Watched(alert_disk_gb=0.0)
    off.left = 0.0
    assert off() == []


@pytest.mark.parametrize(("seconds", "raised"), [(WARM - 1, []), (WARM, ["gpu-idle"])])
def test_an_idle_gpu_once_it_is_warm(seconds: float, raised: list[str]) -> None:
    idle = {"gpu_util_mean_window": 9.0, "seconds": seconds}
    assert Watched()(**idle) == raised
    assert Watched(alert_gpu_idle=9.0)(**idle) == []
    assert Watched()(gpu_util_mean_window=None, seconds=seconds) == []


def test_the_same_alert_waits_for_its_cooldown_and_others_do_not() -> None:
    watched = Watched(alert_cooldown=5.0)
    idle = {"gpu_util_mean_window": 1.0}
    assert [watched(**idle) for _ in range(7)] == [
        ["gpu-idle"], [], [], [], [], ["gpu-idle"], [],
    ]  # fmt: skip
    assert watched(**idle, updates_skipped=3.0) == ["nan"]
    assert Watched(alert_cooldown=0.0)(**idle) == []
