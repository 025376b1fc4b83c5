"""Two ranks with half of the lanes each learn what one process with all of them learns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_pool import RankPool
from rank_runs import alone, learned
from tiny_runs import tiny

from warpzone.config import TrainConfig

UPDATES = 20
#: Sums of gradients are added up in another order, and Adam divides small numbers by small ones.
CLOSE: Any = {"rtol": 1e-3, "atol": 1e-5}
KINDS: dict[str, dict[str, Any]] = {
    "ppo": {"epochs": 2, "target_kl": 0.02, "sticky": 0.2},
    "accumulated": {"minibatch": 8, "grad_accum": 2, "augment_shift": 2, "weight_decay": 0.01},
    "vtrace": {"algo": "vtrace", "normalize_advantages": True},
    "memory": {"memory": "gru", "ema": 0.9, "previous_action": True, "minibatch": 8},
    "noisy": {"algo": "a2c", "noisy": True, "augment_brightness": 0.3},
    "guided": {
        "stages": "1-1,1-2",
        "curriculum": "clear-rate",
        "archive_share": 0.5,
        "archive_explore": 0.3,
        "archive_cell": 16,
        "adaptive": True,
        "adaptive_window": 4,
        "adaptive_cooldown": 2,
        "scripted_sequence": "RIGHT+B:20",
        "scripted_share": 1.0,
        "memory": "lstm",
        "algo": "vtrace",
        "grad_accum": 2,
        "minibatch": 8,
        "normalize_advantages": True,
    },
    "overlap": {"overlap_collect": True, "curriculum": "progress", "stages": "1-1,1-2"},
}


@pytest.fixture(scope="module")
def pool() -> Iterator[RankPool]:
    made = RankPool()
    yield made
    made.close()


def settings(folder: Path, **changes: Any) -> TrainConfig:
    values = {"max_steps": UPDATES * 32, "checkpoint_minutes": 0.0, "run_name": "one"}
    return tiny(runs_dir=str(folder), **{**values, **changes})


@pytest.mark.parametrize("kind", KINDS)
def test_two_ranks_learn_what_one_process_learns(
    pool: RankPool, tmp_path: Path, kind: str
) -> None:
    whole = alone(settings(tmp_path / "one", **KINDS[kind]))
    first, second = pool.call(learned, settings(tmp_path / "two", **KINDS[kind]))
    assert len(whole["rows"]) == UPDATES
    # Lane by lane, bit by bit.
    assert first["episodes"] == whole["episodes"] == second["episodes"]
    assert whole["episodes"]
    actions = torch.cat([first["actions"], second["actions"]], 2)
    assert torch.equal(actions, whole["actions"])
    for name, part in whole["weights"].items():
        torch.testing.assert_close(first["weights"][name], part, **CLOSE)
        assert torch.equal(first["weights"][name], second["weights"][name])
    ours, theirs = first["state"], whole["state"]
    assert ours["collector"]["guide"]["curriculum"] == theirs["collector"]["guide"]["curriculum"]
    for part in ("age", "history"):
        assert torch.equal(ours["collector"][part], theirs["collector"][part])
    assert (ours["learner"]["ema"] is None) == (theirs["learner"]["ema"] is None)
    if ours["learner"]["ema"] is not None:
        for name, part in theirs["learner"]["ema"]["averages"].items():
            torch.testing.assert_close(ours["learner"]["ema"]["averages"][name], part, **CLOSE)
    for mine, yours in zip(first["rows"], whole["rows"], strict=True):
        for name in ("loss_total", "entropy", "approx_kl", "updates_vetoed", "archive_size"):
            assert mine.get(name, 0) == pytest.approx(yours.get(name, 0), rel=1e-3, abs=1e-4), name
        assert "communication_time_share" in mine
        assert "communication_time_share" not in yours
