"""When a run's budget is spent, and how its time is counted."""

from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.train import budget as module
from warpzone.train.budget import Budget


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def budget(on_gpu: bool = False, **changes: Any) -> Budget:
    return Budget(tiny(max_steps=3 * 32, **changes), on_gpu=on_gpu)


def test_steps() -> None:
    counted = budget()
    assert [counted.spent(ahead) for ahead in range(4)] == [False, False, False, True]
    for _ in range(3):
        assert not counted.spent()
        counted.count_update()
    assert counted.spent()
    assert (counted.global_step, counted.global_update) == (96, 3)
    assert counted.progress == 1.0


def test_time(clock: Clock) -> None:
    counted = budget(max_time=1.0)
    clock.now += 59.0
    assert not counted.spent()
    assert counted.left(rate=96 / 3600) == pytest.approx(1.0)
    assert counted.left(rate=960.0) == pytest.approx(0.1)
    clock.now += 2.0
    assert counted.spent()
    assert counted.left(rate=96 / 3600) == 0.0
    counted.started += 5.0  # A pause.
    assert not counted.spent()


@pytest.mark.parametrize(("length", "updates"), [(41.0, 1), (35.0, 2), (9.0, 7), (0.5, 120)])
def test_a_run_ends_at_the_update_that_is_nearest_to_its_time(
    clock: Clock, length: float, updates: int
) -> None:
    counted = Budget(tiny(max_steps=1000 * 32, max_time=1.0), on_gpu=False)
    counted.begin()
    while not counted.spent():
        clock.now += length
        counted.count_update()
    assert counted.global_update == updates
    assert abs(counted.seconds - 60.0) <= length / 2


def test_a_slow_first_update_or_a_pause_does_not_end_a_run_early(clock: Clock) -> None:
    counted = Budget(tiny(max_steps=1000 * 32, max_time=1.0), on_gpu=False)
    counted.begin()
    for seconds in (30.0, 1.0, 20.0):
        clock.now += seconds
        counted.count_update()
    assert not counted.spent()
    clock.now += 8.0
    assert not counted.spent()
    assert counted.spent(ahead=1)  # The update whose rollout is being collected comes before.


@pytest.mark.parametrize(("on_gpu", "charged"), [(False, 0.0), (True, 5400.0)])
def test_gpu_time(clock: Clock, on_gpu: bool, charged: float) -> None:
    counted = budget(on_gpu, max_cost_gpu_hours=1.0)
    clock.now += 60.0  # What comes before the first update is not charged.
    counted.begin()
    for _ in range(3):
        clock.now += 1800.0
        counted.charge()
    assert counted.gpu_seconds == charged
    assert counted.spent() == on_gpu
