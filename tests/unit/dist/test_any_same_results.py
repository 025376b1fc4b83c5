"""Two ranks learn what one process learns, whatever the settings: combinations that nobody chose,
beside those of `test_same_results.py`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from rank_pool import RankPool
from rank_runs import alone, learned
from tiny_runs import tiny

from warpzone.model.spec import MEMORIES

UPDATES, STEPS = 3, 32
#: Sums of gradients are added up in another order.
CLOSE: Any = {"rtol": 1e-3, "atol": 1e-5}
#: Minibatches of whole lanes, and whole optimiser steps.
PARTS: st.SearchStrategy[dict[str, int]] = st.sampled_from(
    [
        {"minibatch": 8},
        {"minibatch": 8, "grad_accum": 2},
        {"minibatch": 8, "grad_accum": 4},
        {"minibatch": 16, "grad_accum": 2},
        {"minibatch": 32},
    ]
)
#: PPO and APPO may learn from a rollout twice.
ALGORITHMS: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {"algo": st.sampled_from(["ppo", "appo"]), "epochs": st.sampled_from([1, 2])}
    ),
    st.fixed_dictionaries({"algo": st.sampled_from(["a2c", "vtrace"])}),
)


@pytest.fixture(scope="module")
def pool() -> Iterator[RankPool]:
    made = RankPool()
    yield made
    made.close()


@settings(max_examples=12, derandomize=True, deadline=None, database=None, phases=(Phase.generate,))
@given(
    algorithm=ALGORITHMS,
    parts=PARTS,
    others=st.fixed_dictionaries(
        {
            "memory": st.sampled_from(MEMORIES),
            "ema": st.sampled_from([0.0, 0.6]),
            "noisy": st.booleans(),
            "normalize_advantages": st.booleans(),
            "seed": st.integers(0, 1000),
        }
    ),
)
def test_two_ranks_learn_what_one_process_learns(
    pool: RankPool, algorithm: dict[str, Any], parts: dict[str, int], others: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        kind = {**algorithm, **parts, **others, "max_steps": UPDATES * STEPS, "run_name": "one"}
        whole = alone(tiny(runs_dir=str(Path(folder) / "whole"), **kind))
        first, second = pool.call(learned, tiny(runs_dir=str(Path(folder) / "shared"), **kind))
    assert len(whole["rows"]) == len(first["rows"]) == UPDATES
    assert first["episodes"] == whole["episodes"] == second["episodes"]
    actions = torch.cat([first["actions"], second["actions"]], 2)
    assert torch.equal(actions, whole["actions"])
    for name, part in whole["weights"].items():
        torch.testing.assert_close(first["weights"][name], part, **CLOSE)
        assert torch.equal(first["weights"][name], second["weights"][name])
    averages = [one["state"]["learner"]["ema"] for one in (first, whole)]
    assert all((average is not None) == (others["ema"] > 0) for average in averages)
    if others["ema"]:
        for name, part in averages[1]["averages"].items():
            torch.testing.assert_close(averages[0]["averages"][name], part, **CLOSE)
    for mine, yours in zip(first["rows"], whole["rows"], strict=True):
        for name in ("loss_total", "entropy", "grad_norm"):
            assert mine.get(name, 0) == pytest.approx(yours.get(name, 0), rel=1e-3, abs=1e-4), name
