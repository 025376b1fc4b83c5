"""Whatever features a run combines: it learns, stopping changes nothing, and acting is learning."""

import math
import tempfile
from pathlib import Path
from typing import Any

import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tiny_runs import Recorder, same, tiny

from warpzone.config import TrainConfig
from warpzone.data.stacking import stack_sequence
from warpzone.metrics import schema
from warpzone.observers.metrics import MetricsObserver
from warpzone.run.reader import read_rows
from warpzone.run.resume import find_start
from warpzone.train.loop import Run
from warpzone.train.saving import state_of

UPDATES = 3
#: Sums of the same numbers in another order.
CLOSE: dict[str, Any] = {"rtol": 1e-3, "atol": 1e-4}
#: What a row says about the machine and not about the run.
CLOCKS = (
    *("time", "seconds", "eta", "env_steps", "env_frames", "updates_per", "update_time"),
    *("rollout_time", "learn_time", "replay_sample_"),
)
PER = {"algo": "vtrace", "per": True, "per_memory_gb": 0.002, "per_segments": 5}
#: One of each line, in all combinations.
FEATURES: dict[str, list[dict[str, Any]]] = {
    "algorithm": [
        {"epochs": 2, "target_kl": 1e-5},
        {"algo": "a2c", "normalize_advantages": True},
        {"algo": "vtrace", "weight_decay": 0.1},
        {"algo": "appo", "epochs": 2},
        {**PER, "per_burn_in": 3},
        {**PER, "per_gpu_sample": True, "per_sample_interval": 2, "per_alpha": 0.0},
    ],
    "memory": [{"memory": name} for name in ("none", "gru", "lstm", "gtrxl")],
    "picture": [
        {},
        {"observation": "tiles"},
        {"observation": "ram"},
        {"color": True, "crop_status_bar": True, "augment_brightness": 0.3},
        {"encoder": "impala", "impala_blocks": 1, "max_last_two": True},
    ],
    "stack": [{"frame_stack": count} for count in (1, 2, 4)],
    "network": [{}, {"noisy": True, "ema": 0.5}, {"previous_action": True}],
    "lanes": [{"groups": 1, "grad_accum": 2}, {"groups": 2, "sticky": 0.25}, {"groups": 4}],
    "stages": [
        {},
        {"stages": "1-1,2-2", "curriculum": "progress"},
        {"stages": "1-2", "stage_span": 2},
        {"random_stage": True, "curriculum": "clear-rate"},
        {"whole_game": True},
    ],
    "starts": [
        {},
        {"archive_share": 0.9, "archive_cell": 1, "archive_size": 2, "stagnation_limit": 9},
        {"scripted_sequence": "RIGHT+B:9,UP:1", "scripted_steps": 40},
        {"probe_forward_actions": 2, "scripted_forward_frames": 30, "scripted_share": 1.0},
        {"auto_bootstrap_threshold": 1, "auto_bootstrap_frames": 10, "actions": "LEFT;RIGHT"},
    ],
    "rewards": [
        {"reward": "gym"},
        {"reward_scale_final": 0.0, "reward_scale_anneal_steps": 50, "reward_clip": 0.0},
        {"reward": "shaped", "milestone_interval": 10, "milestone_bonus": 1.0},
    ],
    "schedules": [{}, {"adaptive": True, "adaptive_window": 2}, {"augment_shift": 32}],
}


def life(config: TrainConfig, updates: int) -> Run:
    """From where the last one ended to so many updates."""
    run = Run(config, [MetricsObserver(config)], start=find_start(config, lambda text: None))
    assert run.notes == []
    try:
        run.done = lambda ahead=0: run.global_update + ahead >= updates  # type: ignore[method-assign]
        run.learn(Recorder())  # type: ignore[arg-type]
        run.save("interrupt")
    finally:
        run.close()
    return run


def plain(value: Any) -> Any:
    """The same with tensors as bytes, which compare as a whole."""
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.detach().numpy().tobytes()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def state(run: Run) -> dict[str, Any]:
    """Everything but the clocks and the generators that are nobody's."""
    kept = {**state_of(run, lanes=False), "seconds": 0.0, "random": None}
    return {name: plain(part) for name, part in kept.items()}


def rows(run: Run) -> list[dict[str, Any]]:
    """Checked against the schema; without what clocks say."""
    found = list(read_rows(run.folder.path, "metrics.jsonl"))
    assert [row["update"] for row in found] == list(range(1, UPDATES + 1))
    for row in found:
        assert row.keys() >= set(schema.NAMES)
        assert all(schema.find(name) is not None for name in row)
        assert all(value is None or math.isfinite(value) for value in row.values())
        assert row["loss_total"] is not None
        owners = (row[name] or 0.0 for name in schema.NAMES if name.startswith("time_"))
        assert math.isclose(sum(owners), row["update_time"], rel_tol=1e-3)
    return [
        {name: value for name, value in row.items() if not name.startswith(CLOCKS)} for row in found
    ]


@torch.no_grad()
def check_acting(config: TrainConfig) -> None:
    """The next rollout, once more in one piece."""
    run = Run(config, start=find_start(config, lambda text: None))
    try:
        rollout = run.driver.play().rollout
    finally:
        run.close()
    obs = stack_sequence(rollout.frames, rollout.age)
    output = run.agent(obs, rollout.previous_actions, rollout.state, rollout.starts)
    torch.testing.assert_close(output.logits[:-1], rollout.logits, **CLOSE)
    torch.testing.assert_close(output.value[:-1], rollout.values, **CLOSE)
    torch.testing.assert_close(output.value[-1], rollout.last_value, **CLOSE)


@settings(
    max_examples=16,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    chosen=st.fixed_dictionaries({name: st.sampled_from(FEATURES[name]) for name in FEATURES}),
    stop=st.integers(1, UPDATES - 1),
)
def test_a_run_of_many_features_goes_on_as_if_it_had_not_stopped(
    chosen: dict[str, dict[str, Any]], stop: int
) -> None:
    changes = {name: value for part in chosen.values() for name, value in part.items()}
    with tempfile.TemporaryDirectory() as place:
        config = tiny(
            **changes,
            runs_dir=str(Path(place) / "straight"),
            run_name="one",
            resume="auto",
            checkpoint_minutes=0.0,
            parquet_interval=0.0,
            max_steps=(UPDATES + 1) * 32,
        )
        straight = life(config, UPDATES)
        config = config.replace(runs_dir=str(Path(place) / "stopped"), num_threads=3)
        life(config, stop)
        stopped = life(config, UPDATES)
        assert same(stopped.agent, straight.agent)
        assert state(stopped) == state(straight)
        assert rows(stopped) == rows(straight)
        check_acting(config)
