"""Parquet, TensorBoard and W&B get the rows of a run; what cannot be written is said."""

import json
import os
import platform
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from observed_runs import learn, observed
from tiny_runs import tiny

from warpzone.config import ConfigError
from warpzone.metrics.sinks import heartbeats
from warpzone.metrics.sinks import parquet as parquet_sink
from warpzone.metrics.sinks.heartbeats import HeartbeatSink
from warpzone.metrics.sinks.parquet import ParquetSink
from warpzone.metrics.sinks.tensorboard import TensorBoardSink
from warpzone.observers.health import HealthObserver
from warpzone.observers.make import make_observers
from warpzone.observers.metrics import MetricsObserver
from warpzone.run.names import HEARTBEATS_PARQUET, PARQUET
from warpzone.run.resume import find_start
from warpzone.train.loop import Run


def row(step: int, **more: Any) -> dict[str, Any]:
    return {"timestamp": 1e9 + step, "global_step": step, "loss_total": step / 2, **more}


def table(folder: Path) -> dict[str, list[Any]]:
    from pyarrow import parquet

    return dict(parquet.read_table(folder / PARQUET).to_pydict())


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events: Any = EventAccumulator(str(folder / "tensorboard"))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_parquet_has_the_newest_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_sink, "ROWS", 4)
    sink = ParquetSink(tmp_path, before=[row(1), row(2)])
    sink.write(row(3, clear_rate_1_2=0.5, loss_value=float("nan"), note="text", unknown=1.0))
    sink.save()
    seen = table(tmp_path)
    assert seen["global_step"] == [1, 2, 3]
    assert seen["clear_rate_1_2"] == [None, None, 0.5]
    assert seen["loss_value"] == seen["gpu_util_last"] == [None, None, None]
    assert "note" not in seen
    assert "unknown" not in seen
    for step in range(4, 10):
        sink.write(row(step))
    sink.close()
    assert table(tmp_path)["global_step"] == [6, 7, 8, 9]
    assert table(tmp_path)["loss_total"] == [3.0, 3.5, 4.0, 4.5]
    assert [path.name for path in (tmp_path / PARQUET).parent.iterdir()] == [PARQUET.name]


def beats(folder: Path) -> dict[str, list[Any]]:
    from pyarrow import parquet

    return dict(parquet.read_table(folder / HEARTBEATS_PARQUET).to_pydict())


def test_heartbeats_become_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "ROWS", 3)
    sink = HeartbeatSink(tmp_path, before=[{"update": 1, "phase": "start"}, {"update": True}])
    sink.write({"update": 2.0, "phase": 7, "message": "hi", "proc_mem_rss_mb": 3, "other": 1})
    sink.save()
    seen = beats(tmp_path)
    assert tuple(seen) == heartbeats.NAMES
    assert seen["update"] == [1, None, 2]
    assert seen["phase"] == ["start", None, None]
    assert seen["message"] == [None, None, "hi"]
    assert seen["proc_mem_rss_mb"] == [None, None, 3.0]
    written = sink.path.stat().st_mtime_ns
    sink.save()
    assert sink.path.stat().st_mtime_ns == written  # There is nothing new.
    sink.write({"update": 2**70, "idle_seconds": 2**70})
    sink.close()
    assert beats(tmp_path)["update"] == [None, 2, None]
    assert beats(tmp_path)["idle_seconds"][-1] == float(2**70)


def test_heartbeats_of_a_fleet_have_its_lags(tmp_path: Path) -> None:
    sink = HeartbeatSink(tmp_path, before=[{"update": 1}])
    fleet = {"policy_lag": 2, "lag_p50": 1.5, "lag_max": 3, "actors_present": 4, "actors_lost": 0}
    sink.write({"update": 2, **fleet})
    sink.close()
    assert {name: beats(tmp_path)[name] for name in fleet} == {
        name: [None, value] for name, value in fleet.items()
    }


def held_bytes() -> int:
    """What this file and the sink hold; other threads of the process have memory of their own."""
    files = [tracemalloc.Filter(True, file) for file in (__file__, heartbeats.__file__)]
    traces = tracemalloc.take_snapshot().filter_traces(files).traces
    return sum(trace.size for trace in traces)


def test_heartbeats_take_no_more_memory_in_a_long_run(tmp_path: Path) -> None:
    """In an hour of one every two seconds, a tuple for each had been a MiB."""
    sink = HeartbeatSink(tmp_path)
    held = []
    tracemalloc.start()
    for beat in range(4_000):
        sink.write(
            {"timestamp": 1e9 + beat / 7, "phase": "learn", "update": 10**6 + beat, "message": ""}
            | dict.fromkeys(heartbeats.NUMBERS[1:8], beat / 3)
        )
        if beat in (1_999, 3_999):
            held.append(held_bytes())
    tracemalloc.stop()
    assert held[1] - held[0] < 10_000


def test_heartbeats_are_written_a_few_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(heartbeats, "ROWS", 8)
    monkeypatch.setattr(heartbeats, "GROUP", 3)
    sink = HeartbeatSink(tmp_path, before=[{"update": number} for number in range(10)])
    sink.save()
    assert beats(tmp_path)["update"] == list(range(2, 10))
    groups = parquet.ParquetFile(tmp_path / HEARTBEATS_PARQUET).metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [3, 3, 2]
    parts = sink._parts(10)
    assert next(parts)["update"].tolist() == [2, 3, 4]
    for late in (10, 11, 12, 13):
        sink.write({"update": late})
    assert [part["update"].tolist() for part in parts] == [[6, 7], [8, 9]]


def test_the_heartbeats_of_a_run_and_of_its_resume_are_all_there(tmp_path: Path) -> None:
    for _ in range(2):
        config = tiny(runs_dir=str(tmp_path), run_name="run", resume="auto", parquet_interval=600.0)
        kinds = {HealthObserver, MetricsObserver}
        observers = [one for one in make_observers(config) if type(one) in kinds]
        learn(Run(config, observers, start=find_start(config, lambda text: None)))
    folder = tmp_path / "run"
    lines = [json.loads(text) for text in (folder / "heartbeat.jsonl").read_text().splitlines()]
    seen = beats(folder)
    assert seen["phase"] == [line["phase"] for line in lines]
    assert seen["timestamp"] == [line["timestamp"] for line in lines]
    assert seen["phase"].count("done") == 2
    assert set(lines[-1]) <= set(seen)


def test_parquet_is_written_a_few_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in memory while writing does not grow with the rows that there are."""
    from pyarrow import parquet

    monkeypatch.setattr(parquet_sink, "GROUP", 3)
    sink = ParquetSink(tmp_path, before=[row(step) for step in range(8)])
    sink.save()
    assert table(tmp_path)["global_step"] == list(range(8))
    groups = parquet.ParquetFile(tmp_path / PARQUET).metadata
    sizes = [groups.row_group(at).num_rows for at in range(groups.num_row_groups)]
    assert sizes == [3, 3, 2]


#: Writes after each of the rows, and prints what is in use more at the end than in the middle.
WRITING = """
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[2])
from soak import in_use

from warpzone.metrics.sinks.heartbeats import HeartbeatSink
from warpzone.metrics.sinks.parquet import ParquetSink

for kind in (ParquetSink, HeartbeatSink):
    sink = kind(Path(sys.argv[1]), ({"global_step": step} for step in range(400)))
    for step in range(400, 480):
        if step == 440:
            before = in_use()["in_use_mib"]
        sink.write({"global_step": step, "timestamp": step / 3})
        sink.save()
    print(round((in_use()["in_use_mib"] - before) * 2**20))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallinfo2 is glibc's")
def test_writing_more_rows_leaves_nothing_behind(tmp_path: Path) -> None:
    """NumPy keeps an array of up to a KiB for each size there was, 20 kB in 40 writes."""
    scripts = Path(__file__).parents[3] / "scripts"
    done = subprocess.run(
        [sys.executable, "-c", WRITING, str(tmp_path), str(scripts)],
        capture_output=True,
        text=True,
        check=True,
        # What threads keep for themselves counts as in use.
        env={**os.environ, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"},
    )
    assert all(int(line) < 4_000 for line in done.stdout.split()), done.stdout
    assert len(done.stdout.split()) == 2


def test_parquet_leaves_out_rows_that_go_while_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_sink, "ROWS", 6)
    monkeypatch.setattr(parquet_sink, "GROUP", 2)
    sink = ParquetSink(tmp_path, before=[row(step) for step in range(7)])
    parts = sink._parts(7, 3)
    step = sink._columns["global_step"]
    assert next(parts)[:, step].tolist() == [1, 2]
    for late in (7, 8, 9, 10):
        sink.write(row(late))
    assert [part[:, step].tolist() for part in parts] == [[5, 6]]


def test_parquet_is_not_written_again_without_news(tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path)
    sink.save()
    assert not (tmp_path / PARQUET).exists()
    sink.write(row(1))
    sink.save()
    before = (tmp_path / PARQUET).stat().st_ino
    sink.save()
    assert (tmp_path / PARQUET).stat().st_ino == before


def test_tensorboard_forgets_what_a_resumed_run_does_again(tmp_path: Path) -> None:
    first = TensorBoardSink(tmp_path)
    for step in (1, 2, 3, 4):
        first.write(row(step, gpu_util_last=None, loss_value=float("inf")))
    first.close()
    second = TensorBoardSink(tmp_path, global_step=2)
    second.write(row(3, loss_total=99.0))
    second.close()
    seen = scalars(tmp_path)
    assert seen["loss/loss_total"] == [(1, 0.5), (2, 1.0), (3, 99.0)]
    assert "machine/gpu_util_last" not in seen
    assert "loss/loss_value" not in seen


def test_tensorboard_says_where_it_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = observed(tmp_path, MetricsObserver, enable_tensorboard=True)
    where = run.folder.path / "tensorboard"
    assert f"[train][log] tensorboard_log_dir={where}\n" in capsys.readouterr().err
    assert [step for step, _ in scalars(run.folder.path)["run/global_step"]] == [32, 64, 96]
    assert b"meta/started" in next(where.iterdir()).read_bytes()


def test_tensorboard_that_cannot_be_written_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tensorboard").write_text("in the way")
    run = observed(tmp_path, MetricsObserver, enable_tensorboard=True)
    said = capsys.readouterr().err
    assert "[train][warn] tensorboard cannot be written" in said
    assert "tensorboard_log_dir" not in said
    assert run.global_step == 96
    assert table(run.folder.path)["global_step"] == [32, 64, 96]


@pytest.mark.parametrize("package", ["tensorboard", "wandb"])
def test_a_missing_package_is_named(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    flags: dict[str, Any] = {"tensorboard": {"enable_tensorboard": True}}
    with pytest.raises(ConfigError, match=rf"pip install 'warpzone\[{package}\]'"):
        MetricsObserver(tiny(**flags.get(package, {"wandb_project": "mario"})))


class FakeWandb:
    """Stands in for the wandb package, which is not among our requirements: it has the three calls
    that we use, with the same arguments, and keeps what they are given."""

    class Error(Exception):
        """As the package's own."""

    def __init__(self) -> None:
        self.__spec__ = SimpleNamespace(name="wandb")
        self.settings: dict[str, Any] = {}
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.finished = 0

    def init(self, **settings: Any) -> Any:
        if settings["project"] == "forbidden":
            raise self.Error("no API key")
        self.settings = settings
        return self

    def log(self, values: dict[str, float], *, step: int) -> None:
        self.rows.append((step, values))

    def finish(self) -> None:
        self.finished += 1


def test_wandb_gets_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeWandb()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    run = observed(tmp_path, MetricsObserver, wandb_project="mario")
    assert fake.settings["project"] == "mario"
    assert fake.settings["resume"] == "allow"
    assert fake.settings["id"] == (run.folder.path / "wandb-id").read_text()
    assert fake.settings["config"]["num_envs"] == 4
    assert [step for step, _ in fake.rows] == [32, 64, 96]
    assert "loss/loss_total" in fake.rows[0][1]
    assert all(isinstance(value, int | float) for value in fake.rows[0][1].values())
    assert fake.finished == 1


def test_wandb_that_refuses_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", FakeWandb())
    run = observed(tmp_path, MetricsObserver, wandb_project="forbidden")
    assert "[train][warn] wandb cannot be written" in capsys.readouterr().err
    assert run.global_step == 96
