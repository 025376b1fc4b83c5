"""Training through the same collector on another back-end."""

import math
from pathlib import Path

import pytest
from tiny_runs import learn, make_agent, make_collector, tiny

from warpzone.collect.backend_lanes import RESTARTS
from warpzone.env.backends.interface import BackendError
from warpzone.env.infos import COLUMN

SCRIPTED = {
    "scripted_sequence": "RIGHT+B:60",
    "scripted_share": 1.0,
    "reward": "shaped",
    "reward_distance_weight": 0.05,
    "stagnation_limit": 0,
}


@pytest.mark.parametrize("backend", ["native", "nes-py"])
def test_shaping_smoke(tmp_path: Path, backend: str) -> None:
    """One scripted episode start: shaping is above zero on both back-ends."""
    if backend == "nes-py":
        pytest.importorskip("gym_super_mario_bros", reason="needs requirements-compare.lock")
    lanes = {"num_envs": 2, "groups": 1, "minibatch": 16, "max_steps": 16, "force_sync": True}
    _, shown = learn(tmp_path, backend=backend, **lanes, **SCRIPTED)
    row = shown.rows[-1]
    assert row["env_shaping_raw_sum"] > 0
    assert row["env_distance_delta_sum"] > 0
    assert math.isfinite(row["loss_total"])


def test_workers_and_ram_x(tmp_path: Path) -> None:
    """A module:factory in worker processes, in two groups, with x read from RAM."""
    run, shown = learn(
        tmp_path,
        backend="backend_games:with_ram",
        enable_ram_x_parse=True,
        worker_start_delay=0.0,
        stagnation_limit=0,
        max_steps=64,
    )
    assert [group.backend.num_lanes for group in run.collector.groups] == [2, 2]  # type: ignore[attr-defined]
    row = shown.rows[-1]
    assert row["env_shaping_raw_sum"] > 0
    assert row["env_shaping_parse_fail"] == 0
    assert row[RESTARTS] == 0
    # One count over both groups, also for the workers, and each event once.
    events = run.collector.groups.take_events()
    made = [event for event in events if event["kind"] == "constructing"]
    assert [event["text"] for event in made] == [f"constructing env {n}/4" for n in range(1, 5)]
    ready = sorted(event["env"] for event in events if event["kind"] == "ready")
    assert ready == [1, 2, 3, 4]
    assert run.collector.groups.take_events() == []


def test_a_lost_worker_does_not_end_the_run(tmp_path: Path) -> None:
    """Every game dies in the third step after it was made; the run comes to its end."""
    _, shown = learn(
        tmp_path,
        backend="backend_games:mortal",
        worker_start_delay=0.0,
        frame_skip=1,
        start_delay=0,
        num_envs=2,
        groups=1,
        minibatch=8,
        rollout_steps=4,
        max_steps=16,
    )
    # Eight steps of each lane: a worker is lost in every third.
    assert shown.rows[-1][RESTARTS] == 4
    assert math.isfinite(shown.rows[-1]["loss_total"])


def test_resumed_games_begin_anew() -> None:
    config = tiny(backend="backend_games:walk", force_sync=True, start_delay=0, stagnation_limit=0)
    collector = make_collector(config, make_agent(config))
    collector.collect()
    moved = [int(group.info[0, COLUMN["steps"]]) for group in collector.groups]
    assert min(moved) > 0
    reason = collector.load_state_dict(collector.state_dict())
    assert "cannot be saved" in reason
    assert all(int(group.info[0, COLUMN["steps"]]) == 0 for group in collector.groups)
    collector.close()


def test_what_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="cannot be imported"):
        learn(tmp_path, backend="no_such_module:make")
