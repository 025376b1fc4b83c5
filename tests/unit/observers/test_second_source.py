"""The metrics of a short real run, computed again by a reader of its own from what else the run
wrote down: episodes, evaluations, and the configuration."""

import itertools
import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from effects import BASE
from safetensors import safe_open
from tiny_runs import Recorder

from warpzone.config import TrainConfig
from warpzone.observers.make import make_observers
from warpzone.train.loop import Run

Row = dict[str, Any]
#: The episodes that numbers are about, of all stages together and of one.
WINDOW, STAGE_WINDOW = 500, 100
#: Buttons that clear 1-1, end in a pit of 1-2 and at an enemy of 1-3.
SETTINGS = {
    "stages": "1-1..1-3",
    "random_stage": True,
    "stage_span": 3,
    "scripted_sequence": "demo-eu",
    "rom": "eu",
    "frame_skip": 8,
    "num_envs": 6,
    "rollout_steps": 60,
    "minibatch": 180,
    "max_steps": 6 * 60 * 8,
    "start_delay": 2,
    "stagnation_limit": 30,
    "episode_timeout_steps": 140,
    "eval_interval": 6 * 60 * 4,
    "curriculum": "clear-rate",
}


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = TrainConfig(
        **{**BASE, **SETTINGS, "runs_dir": str(tmp_path_factory.mktemp("runs")), "run_name": "one"}
    )
    run = Run(config, make_observers(config))
    run.train(Recorder())  # type: ignore[arg-type]
    return run.folder.path


def quantile(values: list[float], share: float) -> float:
    """Between the two values next to it, in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def numbers(seen: list[Row]) -> Row:
    """What a row says about the episodes that ended before it."""
    recent = seen[-WINDOW:]
    returns = [one["episode_return"] for one in recent]
    steps = [one["steps"] for one in recent]
    furthest = [one["furthest_x"] for one in recent]
    row = {
        "avg_return": statistics.fmean(returns),
        "recent_return_std": statistics.pstdev(returns),
        "recent_return_min": min(returns),
        "recent_return_max": max(returns),
        "episode_length_mean": statistics.fmean(steps),
        "env_mean_x_pos": statistics.fmean(furthest),
        "env_max_x_pos": max(furthest),
        "episodes_completed": len(seen),
        "clear_rate": sum(one["reason"] == "flag" for one in recent) / len(recent),
    }
    for percent in (50, 90, 99):
        row[f"recent_return_p{percent}"] = quantile(returns, percent / 100)
        row[f"episode_length_p{percent}"] = quantile(steps, percent / 100)
    for reason in ("flag", "death", "timeout", "stagnation"):
        share = sum(one["reason"] == reason for one in recent) / len(recent)
        row[f"episode_end_{reason}_ratio"] = share
    for stage in {one["stage"] for one in seen}:
        last = [one for one in seen if one["stage"] == stage][-STAGE_WINDOW:]
        cleared = sum(one["reason"] == "flag" for one in last)
        row[f"clear_rate_{stage // 4 + 1}_{stage % 4 + 1}"] = cleared / len(last)
    return row


def test_episodes(folder: Path) -> None:
    episodes = lines(folder / "episodes.jsonl")
    rows = lines(folder / "metrics.jsonl")
    assert {one["reason"] for one in episodes} >= {"flag", "death"}
    assert len({one["stage"] for one in episodes}) == 3
    compared = 0
    for row in rows:
        seen = [one for one in episodes if one["global_step"] <= row["global_step"]]
        if not seen:
            continue
        for name, value in numbers(seen).items():
            assert row[name] == pytest.approx(value, rel=1e-6, abs=1e-9), name
        compared += 1
    assert compared >= 6
    assert 0 < rows[-1]["clear_rate"] < 1


def test_rates_and_counters(folder: Path) -> None:
    rows = lines(folder / "metrics.jsonl")
    update = 6 * 60
    for index, row in enumerate(rows):
        assert (row["update"], row["global_step"]) == (index + 1, (index + 1) * update)
        seconds = row["update_time"]
        # Whose the seconds were: all of them are somebody's.
        owned = sum(value or 0.0 for name, value in row.items() if name.startswith("time_"))
        assert owned == pytest.approx(seconds, rel=1e-3)
        assert row["env_steps_per_sec"] == pytest.approx(update / seconds)
        assert row["env_frames_per_sec"] == pytest.approx(8 * update / seconds)
        assert row["updates_per_sec"] == pytest.approx(1 / seconds)
        left = (8 - row["update"]) * seconds
        assert row["eta"] == pytest.approx(left, abs=1e-6)
        assert row["learn_time"] == row["time_learn"]
        assert row["rollout_time"] <= seconds
    # No update takes longer than from one row to the next, and all together not longer than the
    # run: the clocks of rows and of updates are two.
    for before, after in itertools.pairwise(rows):
        assert after["update_time"] <= after["timestamp"] - before["timestamp"] + 0.05
        assert after["seconds"] > before["seconds"]
    assert sum(row["update_time"] for row in rows) <= rows[-1]["seconds"] + 0.05


def test_rewards(folder: Path) -> None:
    """What lanes were paid for distance is the new ground that the sums say."""
    for row in lines(folder / "metrics.jsonl"):
        raw = 0.1 * row["env_distance_delta_sum"]
        assert row["env_shaping_raw_sum"] == pytest.approx(raw, rel=1e-4)
        assert row["env_shaping_scaled_sum"] == pytest.approx(raw, rel=1e-4)


def test_chances_of_stages(folder: Path) -> None:
    """One share in five for all alike, the rest by how often a stage fails; means over the last
    hundred episodes, which is all of them here."""
    episodes = lines(folder / "episodes.jsonl")
    for row in lines(folder / "metrics.jsonl"):
        seen = [one for one in episodes if one["global_step"] <= row["global_step"]]
        failing = []
        for stage in range(3):
            ended = [one["reason"] == "flag" for one in seen if one["stage"] == stage]
            failing.append(1.0 - statistics.fmean(ended) if ended else None)
        known = [value for value in failing if value is not None]
        values = [max(known, default=1.0) if value is None else value for value in failing]
        for stage, value in enumerate(values):
            share = value / sum(values) if sum(values) else 1 / 3
            expected = 0.2 / 3 + 0.8 * share
            assert row[f"stage_share_1_{stage + 1}"] == pytest.approx(expected, abs=1e-6)


def test_evaluations(folder: Path) -> None:
    evals = lines(folder / "evals.jsonl")
    steps = sorted({one["global_step"] for one in evals})
    assert steps == [6 * 60 * 4, 6 * 60 * 8]
    best = -1
    for step in steps:
        now = [one for one in evals if one["global_step"] == step]
        assert len(now) == 3 * 2 * 31
        cleared = sum(one["cleared"] for one in now if one["policy"] == "argmax")
        assert {one["clears"] for one in now} == {cleared}
        assert all(one["cleared"] == (one["reason"] == "flag") for one in now)
        best = max(best, cleared)
    with safe_open(folder / "best.safetensors", "pt") as weights:
        meta = json.loads(weights.metadata()["meta"])
    assert meta["clears"] == best
    assert meta["global_step"] == min(one["global_step"] for one in evals if one["clears"] == best)
