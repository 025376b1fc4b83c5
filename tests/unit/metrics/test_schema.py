"""The schema is the truth: rows, documents and names agree with it."""

import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from observed_runs import learn
from tiny_runs import tiny

from warpzone.config.metrics import MetricsConfig
from warpzone.metrics import schema
from warpzone.observers.make import make_observers
from warpzone.observers.metrics import MetricsObserver
from warpzone.run import reader
from warpzone.run.folder import RunFolder
from warpzone.train.loop import Run

ROOT = Path(__file__).parents[3]
#: What the documents that this project began with ask for by name.
PROMISED = """
loss_total avg_return recent_return_p50 recent_return_p90 recent_return_p99 env_steps_per_sec
updates_per_sec replay_fill_rate replay_last_unique_ratio replay_avg_unique_ratio replay_push_total
replay_priority_mean replay_priority_p50 replay_priority_p90 replay_priority_p99
replay_sample_time_ms gpu_util_last gpu_util_mean_window gpu_mem_used_mb env_mean_x_pos
env_max_x_pos env_distance_delta_sum env_shaping_raw_sum env_shaping_scaled_sum env_shaping_last_dx
env_shaping_last_raw env_shaping_last_scaled env_shaping_last_scale env_shaping_parse_fail
model_compiled global_step learning_rate entropy grad_norm policy_lag eta
"""
PER = {"algo": "vtrace", "per": True, "per_memory_gb": 0.01, "per_segments": 4}


def rows_of(folder: Path, **changes: Any) -> list[dict[str, Any]]:
    config = tiny(runs_dir=str(folder), run_name="run", **changes)
    run = learn(Run(config, make_observers(config)))
    return list(reader.read_rows(run.folder.path, "metrics.jsonl"))


@pytest.mark.parametrize(
    "changes",
    [{**PER, "adaptive": True, "stages": "1-1,1-2"}, {"overlap_collect": True, "stages": "game"}],
    ids=["replay", "overlap"],
)
def test_every_field_of_a_run_is_in_the_schema(tmp_path: Path, changes: dict[str, Any]) -> None:
    before = threading.active_count()
    rows = rows_of(tmp_path, **changes)
    assert threading.active_count() == before
    assert [row["global_step"] for row in rows] == [32, 64, 96]
    for row in rows:
        assert [name for name in row if schema.find(name) is None] == []
        assert set(schema.NAMES) <= set(row)
    last = rows[-1]
    assert {row["gpu_util_last"] for row in rows} == {None}  # The run is on the CPU.
    assert last["proc_mem_rss_mb"] > 0
    assert last["model_compiled"] == 0
    assert (last["replay_fill_rate"] is None) == ("per" not in changes)
    assert (last["adaptive_lr_scale"] is None) == ("adaptive" not in changes)
    assert (last["time_wait"] is None) == ("overlap_collect" not in changes)
    stages = {name for name in last if name.startswith("clear_rate_")}
    assert stages
    assert stages <= {"clear_rate_1_1", "clear_rate_1_2", "clear_rate_game"}


def test_promised_names() -> None:
    assert [name for name in PROMISED.split() if name not in schema.NAMES] == []
    found = schema.find("clear_rate_8_4")
    assert found is not None
    assert found.name == "clear_rate_{W}_{S}"
    assert schema.find("clear_rate_8_44") is None
    assert schema.find("clear_rates") is None


def test_names_are_unique_and_explained() -> None:
    names = [field.name for field in schema.FIELDS]
    assert len(set(names)) == len(names)
    assert all(field.meaning.endswith(".") for field in schema.FIELDS)
    assert all(field.bad == "" or field.bad.endswith((".", ")")) for field in schema.FIELDS)


def test_the_reference_is_up_to_date() -> None:
    script = ROOT / "scripts" / "metrics_doc.py"
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_long_files_are_rotated(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, metrics_rotate_mb=0.005)
    folder = tmp_path / "run"
    parts = [path.name for path in reader.parts(folder, "metrics.jsonl")]
    assert parts == ["metrics-0001.jsonl.gz"]
    assert [row["update"] for row in rows] == [1, 2, 3]


@pytest.mark.parametrize("name", ["episodes", "evals", "heartbeat", "alerts", "env"])
def test_all_files_that_grow_are_rotated(tmp_path: Path, name: str) -> None:
    folder = RunFolder(tmp_path)
    observer = MetricsObserver(MetricsConfig(metrics_rotate_mb=0.001))
    run: Any = SimpleNamespace(folder=folder)
    for number in range(4):
        folder.append(f"{name}.jsonl", [{"n": number, "text": "x" * 600}])
        observer._rotate(run)
    observer._compress(run)
    assert [part.name for part in reader.parts(tmp_path, f"{name}.jsonl")] == [
        f"{name}-0001.jsonl.gz",
        f"{name}-0002.jsonl.gz",
    ]
    assert [row["n"] for row in reader.read_rows(tmp_path, f"{name}.jsonl")] == [0, 1, 2, 3]
