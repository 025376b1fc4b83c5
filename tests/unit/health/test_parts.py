"""The parts that watch over a run, each by itself."""

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_runs import tiny

from warpzone.health.heartbeat import Heartbeat
from warpzone.health.monitor import Gpu, Monitor, ProcessHealth, find_gpu
from warpzone.health.pulse import Pulse
from warpzone.health.slow_steps import SlowSteps
from warpzone.health.stacks import dump
from warpzone.health.stall import GRACE, Stall
from warpzone.health.ticker import Ticker


class Time:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fail(error: Exception) -> None:
    raise AssertionError(error)


# --- slow steps ----------------------------------------------------------------------------------
def test_more_slow_steps_than_the_threshold_are_traced_once() -> None:
    time, traces = Time(), list[str]()
    config = tiny(step_timeout=2.0, slow_step_trace_threshold=3, slow_step_trace_window=60.0)
    slow = SlowSteps(config, traces.append, time)
    for _ in range(3):
        slow.add(2.5)
    for _ in range(50):
        slow.add(2.0)  # Not longer than the limit.
    assert traces == []
    slow.add(2.5)
    assert len(traces) == 1
    assert traces[0].startswith("4 steps of all lanes took longer than 2 s within 60 s")
    for _ in range(22):
        slow.add(9.0)  # Not counted: one trace is enough for a window.
        time.now += 2.5
    assert len(traces) == 1
    time.now = 1061.0
    for _ in range(3):
        slow.add(9.0)  # Counting began anew.
    assert len(traces) == 1
    slow.add(9.0)
    assert len(traces) == 2


def test_slow_steps_outside_the_window_do_not_count() -> None:
    time, traces = Time(), list[str]()
    config = tiny(step_timeout=1.0, slow_step_trace_threshold=2, slow_step_trace_window=10.0)
    slow = SlowSteps(config, traces.append, time)
    for _ in range(20):
        slow.add(1.5)
        time.now += 5.1  # Never more than two in ten seconds.
    assert traces == []


# --- stalls --------------------------------------------------------------------------------------
def stall(time: Time, **changes: Any) -> tuple[Stall, Pulse, list[str], list[int]]:
    pulse, said, left = Pulse(), list[str](), list[int]()
    pulse.last = time.now
    config = tiny(stall_timeout=100.0, **changes)
    return Stall(config, pulse, said.append, leave=left.append, now=time), pulse, said, left


def test_a_stall_is_reported_once_and_again_when_it_goes_on() -> None:
    time = Time()
    watched, pulse, said, left = stall(time)
    pulse.phase = "learn"
    time.now += 100
    watched.look()
    assert said == []
    time.now += 1
    watched.look()
    watched.look()
    assert said == ["no progress for 101 s in phase learn"]
    time.now += 101
    watched.look()
    assert len(said) == 2
    pulse.last = time.now
    time.now += 50
    watched.look()
    assert len(said) == 2
    assert left == []
    assert watched.verdict == ""


def test_a_pause_is_no_stall() -> None:
    time = Time()
    watched, pulse, said, _ = stall(time, fail_on_stall=True)
    pulse.phase = "pause"
    time.now += 1e6
    watched.look()
    assert said == []


def test_a_stalled_run_that_does_not_end_is_left() -> None:
    time = Time()
    watched, _, said, left = stall(time, fail_on_stall=True)
    time.now += 101
    watched.look()
    assert watched.verdict == "no progress for 101 s in phase start (--fail-on-stall)"
    time.now += GRACE
    watched.look()
    assert left == []
    time.now += 1
    watched.look()
    assert left == [1]
    assert said[-1] == "the run did not end within 30 s; the process exits"


def test_a_run_that_gets_on_after_a_stall_may_end_by_itself() -> None:
    time = Time()
    watched, pulse, _, left = stall(time, fail_on_stall=True)
    time.now += 101
    watched.look()
    for _ in range(10):  # The rest of an update that takes minutes.
        time.now += GRACE
        pulse.last = time.now
        watched.look()
    assert left == []
    time.now += GRACE + 1
    watched.look()
    assert left == [1]


# --- pulse and heartbeat -------------------------------------------------------------------------
def test_the_pulse_measures_steps_of_one_rollout() -> None:
    pulse, seconds = Pulse(), list[float]()
    pulse.on_step = seconds.append
    pulse.enter("collect")
    began = pulse.last
    pulse.step()
    first = pulse.last
    pulse.step()
    assert seconds == [first - began, pulse.last - first]
    pulse.enter("learn")
    pulse._step_began -= 1000.0  # A long time of learning between two rollouts...
    pulse.enter("collect")
    pulse.step()
    assert seconds[-1] < 1000.0  # ... is not a slow step.


def test_heartbeat_lines() -> None:
    pulse, rows, counters = Pulse(), list[dict[str, Any]](), [(0, 0), (3, 96)]
    heart = Heartbeat(pulse, lambda: counters.pop(0), rows.append, lambda: {"proc_fds": 7.0})
    pulse.message = "hint: do something"
    pulse.enter("collect")
    heart.beat()
    heart.beat("done")
    assert [row["phase"] for row in rows] == ["collect", "done"]
    assert [row["message"] for row in rows] == ["hint: do something", ""]
    assert rows[0]["steps_per_sec"] is None
    assert rows[1]["steps_per_sec"] == pytest.approx(32 * rows[1]["updates_per_sec"])
    assert rows[1]["idle_seconds"] >= rows[0]["idle_seconds"] >= 0
    assert set(rows[0]) == {
        *("timestamp", "component", "phase", "update", "global_step", "updates_per_sec"),
        *("steps_per_sec", "idle_seconds", "message", "proc_fds"),
    }


def test_what_a_process_takes_of_the_machine() -> None:
    health = ProcessHealth()
    before = health.look_at_all()
    assert "proc_cpu_percent" not in before  # Since nothing.
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        with Path(os.devnull).open() as _:
            after = health.look_at_all()
        child.kill()
    assert after["proc_children"] == before["proc_children"] + 1
    assert after["proc_fds"] > before["proc_fds"]
    assert after["proc_cpu_percent"] >= 0
    assert after["proc_mem_rss_mb"] > 10
    assert after["proc_threads"] >= 1


NO_SPACE = OSError(errno.ENOSPC, "no space")


@pytest.mark.parametrize("problem", [NO_SPACE, MemoryError(), ImportError("failed to map")])
def test_a_ticker_ticks_until_closed_and_tells_of_a_failure(problem: Exception) -> None:
    ticked = threading.Semaphore(0)
    ticker = Ticker("test", 0.001, ticked.release, fail)
    for _ in range(3):
        assert ticked.acquire(timeout=300)
    ticker.close()
    assert "test" not in [thread.name for thread in threading.enumerate()]

    failures, told = list[Exception](), threading.Event()

    def full() -> None:
        raise problem

    def failed(error: Exception) -> None:
        failures.append(error)
        told.set()

    ticker = Ticker("full", 0.001, full, failed)
    assert told.wait(timeout=300)
    ticker.close()
    assert failures == [problem]


def test_stacks_of_all_threads(tmp_path: Path) -> None:
    inside, leave = threading.Event(), threading.Event()

    def waits_in_here() -> None:
        inside.set()
        leave.wait()

    thread = threading.Thread(target=waits_in_here, name="waiter")
    thread.start()
    inside.wait()
    try:
        first = dump(tmp_path, "stall", "because")
        second = dump(tmp_path, "stall", "because")
    finally:
        leave.set()
        thread.join()
    assert first != second
    text = first.read_text()
    assert text.startswith("because\n")
    assert "waits_in_here" in text
    assert "test_stacks_of_all_threads" in text
    assert f"0x{thread.ident:016x} waiter" in text
    assert first.parent == tmp_path / "traces"


# --- monitor -------------------------------------------------------------------------------------
class FakeNvmlError(Exception):
    """What NVML raises."""


class FakeNvml(SimpleNamespace):
    """Stands in for pynvml on machines without a GPU: the questions that we ask, and one that this
    GPU does not answer."""

    NVMLError = FakeNvmlError
    NVML_TEMPERATURE_GPU = 0
    ended = 0
    answers = 0

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:  # noqa: N802
        assert handle == "handle"
        self.answers += 1
        return SimpleNamespace(gpu=self.answers)

    def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:  # noqa: N802
        return SimpleNamespace(used=3 * 2**20, total=8 * 2**20)

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 250_000

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        raise FakeNvmlError("not supported")

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.ended += 1


def test_the_monitor_without_a_gpu_has_no_gpu_fields() -> None:
    gpu, why = find_gpu(torch.device("cpu"))
    assert (gpu, why) == (None, "")
    monitor = Monitor(gpu)
    assert monitor.fields() == {}
    monitor.look()
    fields = monitor.fields()
    assert fields["proc_mem_rss_mb"] > 1
    assert fields["proc_threads"] >= 1
    assert 0 < fields["system_mem_percent"] <= 100
    assert not [name for name in fields if name.startswith("gpu_") or "cpu" in name]
    monitor.look()
    assert monitor.fields()["proc_cpu_percent"] >= 0  # Since the first look.
    assert 0 <= monitor.fields()["system_cpu_percent"] <= 100
    monitor.close()


def test_the_monitor_averages_its_last_looks() -> None:
    nvml = FakeNvml()
    monitor = Monitor(Gpu(nvml, "handle"), window=100)
    for _ in range(150):
        monitor.look()
    fields = monitor.fields()
    assert fields["gpu_util_last"] == 150
    assert fields["gpu_util_mean_window"] == sum(range(51, 151)) / 100
    assert fields["gpu_util_max_window"] == 150
    assert (fields["gpu_mem_used_mb"], fields["gpu_mem_total_mb"]) == (3, 8)
    assert fields["gpu_power_w"] == 250
    assert "gpu_temperature_c" not in fields
    monitor.close()
    assert nvml.ended == 1


@pytest.mark.parametrize("uuid", ["1234-abcd", "GPU-1234-abcd"])
def test_the_gpu_of_a_run_is_found_by_its_uuid(uuid: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = FakeNvml(nvmlInit=lambda: None)
    asked = list[str]()

    def by_uuid(name: str) -> str:
        asked.append(name)
        if name != "GPU-1234-abcd":
            raise FakeNvmlError("not found")
        return "handle"

    nvml.nvmlDeviceGetHandleByUUID = by_uuid
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    properties = SimpleNamespace(uuid=uuid)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    gpu, why = find_gpu(torch.device("cuda"))
    assert gpu is not None
    assert gpu.look()["gpu_power_w"] == 250
    properties.uuid = "other"
    gpu, why = find_gpu(torch.device("cuda"))
    assert gpu is None
    assert why == "NVML does not answer (not found): gpu_* fields stay null"
    assert asked == ["GPU-1234-abcd", "GPU-other"]
