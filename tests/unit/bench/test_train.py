"""The arithmetic of the training benchmarks; the numbers themselves are measured elsewhere."""

import csv
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from warpzone.bench import overlap
from warpzone.bench.train import MODES, STAGES, Plan, Rates, summarise
from warpzone.config import ConfigError, TrainConfig

BASE = TrainConfig(num_envs=8, rollout_steps=16, minibatch=64, size=42, max_steps=512)


def test_ratio_is_to_the_slowest_part_round_by_round() -> None:
    rates = {name: Rates([100.0, 100.0, 100.0]) for name in (*STAGES, *MODES)}
    rates["learner"] = Rates([10.0, 20.0, 40.0])
    rates["serial"] = Rates([9.0, 10.0, 24.0])
    result = summarise(rates, BASE)
    assert result["slowest_alone"] == "learner"
    assert result["alone"]["learner"]["steps_per_sec"] == 20
    assert result["alone"]["learner"]["frames_per_sec"] == 80
    assert result["end_to_end"]["serial"]["steps_per_sec"] == 10
    assert result["ratio_to_slowest"]["serial"] == pytest.approx(0.6)
    assert result["rounds"] == 3


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"rounds": 0}, "a median needs at least one round, not 0"),
        ({"seconds": 0.0}, r"a slice must last longer than 0\.0 s"),
    ],
)
def test_plan_refuses_what_makes_no_median(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Plan(**bad)


def test_grid_has_both_modes_of_every_size() -> None:
    cases = overlap.grid(BASE, (8, 12), (16, 32), updates=4)
    assert [mode for mode, _ in cases] == ["sync", "overlap"] * 4
    assert [config.overlap_collect for _, config in cases] == [False, True] * 4
    assert {(c.num_envs, c.rollout_steps) for _, c in cases} == {
        (8, 16),
        (8, 32),
        (12, 16),
        (12, 32),
    }
    assert all(config.updates == 4 for _, config in cases)
    assert len({config.run_name for _, config in cases}) == 8


def test_minibatch_is_made_to_divide() -> None:
    ((_, config), _) = overlap.grid(BASE, (6,), (10,), updates=2)
    assert config.minibatch == 4
    ((_, config), _) = overlap.grid(BASE.replace(memory="gru"), (6,), (10,), updates=2)
    assert config.minibatch == 60


def test_grid_needs_something_to_average() -> None:
    with pytest.raises(ConfigError, match="--updates"):
        overlap.grid(BASE, (8,), (16,), updates=1)


def metrics(count: int) -> list[dict[str, Any]]:
    """The first two updates take 10 s each, all others 1 s."""
    clock = [10.0, 20.0, *(20.0 + index for index in range(1, count - 1))]
    return [
        {"timestamp": at, "global_step": 128 * number, "update": number}
        for number, at in enumerate(clock, start=1)
    ]


def test_averages_leave_the_warm_up_out() -> None:
    samples = [(5.0, 0.0), (21.0, 40.0), (22.0, 60.0)]
    row = overlap.average("sync", BASE, metrics(10), 0.2, samples, 30.0)
    assert row.steps_per_sec_mean == pytest.approx(128)
    assert row.updates_per_sec_mean == pytest.approx(1)
    assert row.gpu_util_mean_window == 50
    assert row.replay_fill_final == 0
    early = overlap.average("sync", BASE, metrics(10), 0.0, [], 30.0)
    assert early.steps_per_sec_mean < 128
    assert early.gpu_util_mean_window is None


def test_a_warm_up_that_leaves_nothing_leaves_the_last_update() -> None:
    row = overlap.average("sync", BASE, metrics(3), 0.99, [], 1.0)
    assert row.updates_per_sec_mean == pytest.approx(1)


def test_replay_fill_is_the_last_one() -> None:
    rows = metrics(4)
    rows[-1]["replay_fill_rate"] = 0.75
    assert overlap.average("overlap", BASE, rows, 0.5, [], 1.0).replay_fill_final == 0.75


def test_table_has_the_published_columns(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    overlap.write_csv(path, [overlap.average("sync", BASE, metrics(4), 0.5, [], 2.5)])
    with path.open() as file:
        (row,) = list(csv.DictReader(file))
    assert list(row) == [
        "mode",
        "num_envs",
        "rollout",
        "steps_per_sec_mean",
        "updates_per_sec_mean",
        "replay_fill_final",
        "gpu_util_mean_window",
        "duration_sec",
    ]
    assert (row["mode"], row["num_envs"], row["gpu_util_mean_window"]) == ("sync", "8", "")
    assert row["duration_sec"] == "2.5"
