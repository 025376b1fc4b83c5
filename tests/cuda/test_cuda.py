"""What only a GPU can show. Skipped without one; `benchmarks/device.sh verify` runs it there."""

import gc
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from rank_runs import alone
from tiny_runs import Recorder, tiny

from warpzone.collect.actor import record
from warpzone.observers.make import make_observers
from warpzone.observers.progress import Progress
from warpzone.train.loop import Run
from warpzone.train.session import train
from warpzone.train.stopping import Stop

#: Another device serves to try the tests themselves.
DEVICE = os.environ.get("WARPZONE_TEST_DEVICE", "cuda")
pytestmark = pytest.mark.skipif(
    DEVICE == "cuda" and not torch.cuda.is_available(), reason="needs CUDA"
)

#: Sizes that GPU kernels like; everything else stays tiny.
SIZES: dict[str, Any] = {
    "num_envs": 32, "rollout_steps": 16, "minibatch": 128, "encoder_width": 0.5, "hidden_size": 64,
    "device": DEVICE, "num_threads": 2, "max_steps": 4096, "eval_interval": 0,
}  # fmt: skip
VARIANTS: dict[str, dict[str, Any]] = {
    "ppo": {"epochs": 2},
    "vtrace": {"algo": "vtrace"},
    "a2c": {"algo": "a2c"},
    "gru": {"memory": "gru"},
    "gtrxl": {"memory": "gtrxl", "memory_length": 8},
    "per": {"algo": "vtrace", "per": True, "per_memory_gb": 0.05, "per_segments": 8},
    "impala": {"encoder": "impala"},
    "noisy": {"noisy": True, "ema": 0.9},
    "half": {"amp_dtype": "float16"},
}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("overlap", [False, True], ids=["serial", "overlap"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_stopped_run_goes_on(tmp_path: Path, variant: str, overlap: bool) -> None:
    changes = {**SIZES, **VARIANTS[variant], "overlap_collect": overlap}
    config = tiny(**changes, runs_dir=str(tmp_path), run_name="run")

    def learn(run: Run) -> Any:
        run.evaluate = lambda progress: None  # type: ignore[method-assign]
        return run.train(Progress(run.config, ""))

    train(config.replace(max_steps=2048), make_observers, Stop(), learn)
    train(config.replace(resume="latest"), make_observers, Stop(), learn)
    rows = rows_of(tmp_path / "run")
    assert [row["update"] for row in rows] == list(range(1, 9))
    assert [row["global_step"] for row in rows] == [512 * n for n in range(1, 9)]
    assert all(math.isfinite(row["loss_total"]) for row in rows)
    # float16 looks for its loss scale first.
    assert rows[-1]["updates_skipped"] == rows[-3]["updates_skipped"]
    assert variant == "half" or rows[-1]["updates_skipped"] == 0
    assert max(row["policy_lag"] for row in rows) == int(overlap)


@pytest.mark.parametrize("variant", ["ppo", "gru", "per"])
def test_a_resumed_run_acts_as_one_that_was_not_interrupted(
    tmp_path: Path, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It records its graphs anew, which must not draw from the restored generator."""
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    changes = {**SIZES, **VARIANTS[variant], "amp": False, "runs_dir": str(tmp_path)}
    whole = alone(tiny(**changes, run_name="whole"), updates=4)
    config = tiny(**changes, run_name="parts")
    first = alone(config, updates=2)
    second = alone(config.replace(resume="latest"), updates=4)
    actions = torch.cat([first["actions"], second["actions"]])
    assert torch.equal(actions, whole["actions"])
    for name, part in second["weights"].items():
        torch.testing.assert_close(part, whole["weights"][name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("variant", ["ppo", "vtrace", "a2c", "gru", "gtrxl"])
def test_recorded_steps_are_the_plain_ones(tmp_path: Path, variant: str) -> None:
    changes = {**SIZES, **VARIANTS[variant], "amp": False}
    runs = [
        Run(tiny(**changes, cuda_graphs=graphs, runs_dir=str(tmp_path), run_name=str(graphs)))
        for graphs in (True, False)
    ]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    try:
        for _ in range(3):
            rollout = runs[0].collector.collect()
            rollout = rollout._replace(frames=rollout.frames.clone())
            losses = [run.learner.update(rollout, 0.0)["loss_total"] for run in runs]
            assert losses[0] == pytest.approx(losses[1], rel=1e-3, abs=1e-4)
    finally:
        for run in runs:
            run.close()
    for first, second in zip(runs[0].agent.parameters(), runs[1].agent.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("graphs", [True, False], ids=["recorded", "plain"])
@pytest.mark.parametrize("variant", ["ppo", "gru", "gtrxl"])
def test_rollouts_hold_what_was_seen_and_decided(
    tmp_path: Path, variant: str, graphs: bool
) -> None:
    changes = {**SIZES, **VARIANTS[variant], "amp": False, "cuda_graphs": graphs}
    changes |= {"overlap_collect": True, "stagnation_limit": 6, "previous_action": True}
    run = Run(tiny(**changes, runs_dir=str(tmp_path), run_name="run"))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    truncated = 0
    try:
        for _ in range(5):
            rollout = run.collector.collect()
            with torch.no_grad():
                logits, values = run.learner.network.sequence(rollout)
            torch.testing.assert_close(logits[:-1], rollout.logits, rtol=1e-3, atol=1e-4)
            torch.testing.assert_close(values[:-1], rollout.values, rtol=1e-3, atol=1e-4)
            torch.testing.assert_close(values[-1], rollout.last_value, rtol=1e-3, atol=1e-4)
            assert torch.equal(rollout.previous_actions[1:], rollout.actions)
            assert torch.equal(rollout.final_value != 0, rollout.truncated)
            truncated += int(rollout.truncated.sum())
    finally:
        run.close()
    assert truncated > 10


def test_the_monitor_sees_the_gpu(tmp_path: Path) -> None:
    config = tiny(**SIZES, runs_dir=str(tmp_path), run_name="run", monitor_interval=0.05)
    config = config.replace(max_steps=512 * 40)
    run = Run(config, make_observers(config))
    run.evaluate = lambda progress: None  # type: ignore[method-assign]
    run.train(Progress(config, ""))
    last = rows_of(tmp_path / "run")[-1]
    assert last["gpu_mem_used_mb"] > 100
    assert last["gpu_mem_total_mb"] > last["gpu_mem_used_mb"]
    assert 0 <= last["gpu_util_last"] <= 100
    assert 0 <= last["gpu_util_mean_window"] <= 100
    assert last["proc_mem_rss_mb"] > 100


def test_gpu_hours_are_a_budget(tmp_path: Path) -> None:
    config = tiny(**SIZES, runs_dir=str(tmp_path), run_name="run", max_cost_gpu_hours=1 / 3600)
    run = Run(config.replace(max_steps=512 * 10_000))
    shown = Recorder()
    try:
        run.learn(shown)  # type: ignore[arg-type]
    finally:
        run.close()
    assert 1 < run.budget.gpu_seconds < 5
    assert len(shown.rows) == run.global_update > 0


def test_graphs_that_are_garbage_do_not_end_a_recording() -> None:
    """Those of an earlier run in this process, which refers to itself; a program that trains twice
    leaves many, and Python may come to look for garbage at any moment."""
    seen = torch.zeros(8, device="cuda")

    def add() -> None:
        # Enough objects for several searches, were there any.
        assert len([[number] for number in range(5_000)]) == 5_000
        seen.add_(1.0)

    for _ in range(20):
        earlier: list[Any] = [record(add, [seen])]
        earlier.append(earlier)
    del earlier
    gc.set_threshold(100, 2, 2)
    try:
        replay = record(add, [seen])
    finally:
        gc.set_threshold(700, 10, 10)
    replay()
    torch.cuda.synchronize()
    assert seen.tolist() == [1.0] * 8
