"""The soak says "flat" of a run only where growth is ruled out."""

import importlib.util
import platform
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "soak.py"
#: Samples of an hour, every five seconds.
SECONDS = np.arange(0, 3600, 5.0)


@pytest.fixture(scope="module")
def soak() -> ModuleType:
    spec = importlib.util.spec_from_file_location("soak", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def hour(leak: float, noise: float = 0.0) -> list[dict[str, float]]:
    """Updates that take 50 MiB and give it back, steps of the allocator, and a leak in MiB/h."""
    rng = np.random.default_rng(3)
    steps = np.repeat(rng.normal(0, noise, len(SECONDS) // 24), 24)
    busy = rng.uniform(0, 50, len(SECONDS)) * (rng.uniform(size=len(SECONDS)) < 0.7)
    warming = 60 * np.exp(-SECONDS / 120)
    values = 300 - warming + busy + steps + leak * SECONDS / 3600
    return [
        {"seconds": at, "anonymous_mib": value, "rss_mib": value + 100, "fds": 5, "threads": 11}
        | {"in_use_mib": 140 + used, "kept_mib": 50 - used, "python_blocks": 10**6 + 7 * used}
        for at, value, used in zip(SECONDS.tolist(), values.tolist(), busy.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("leak", "noise", "verdict"),
    [(0, 1.0, "flat"), (40, 1.0, "grows"), (16, 1.0, "undecided"), (0, 30.0, "undecided")],
)
def test_verdict(soak: ModuleType, leak: float, noise: float, verdict: str) -> None:
    found = soak.slopes(hour(leak, noise), 60.0)
    memory = found["anonymous_mib"]
    low, high = memory["interval_per_hour"]
    assert memory["verdict"] == verdict
    assert low <= leak <= high
    assert low <= memory["per_hour"] <= high
    assert memory["floors"] == 20
    assert found["fds"]["verdict"] == found["threads"]["verdict"] == "flat"
    assert "verdict" not in found["rss_mib"]


def test_one_file_more_each_ten_minutes_grows(soak: ModuleType) -> None:
    samples = [{**one, "fds": 5 + one["seconds"] // 600} for one in hour(0)]
    assert soak.slopes(samples, 60.0)["fds"]["verdict"] == "grows"


def test_a_fragmented_heap_is_told_from_a_leak(soak: ModuleType) -> None:
    found = soak.slopes(hour(40), 60.0)
    assert found["anonymous_mib"]["verdict"] == "grows"
    assert found["in_use_mib"]["verdict"] == found["python_blocks"]["verdict"] == "flat"
    assert "verdict" not in found["kept_mib"]
    leaking = [{**one, "in_use_mib": 140 + one["seconds"] / 900} for one in hour(0)]
    assert soak.slopes(leaking, 60.0)["in_use_mib"]["verdict"] == "grows"


def test_without_glibc_the_run_says_nothing_of_itself(soak: ModuleType) -> None:
    silent = ("in_use_mib", "kept_mib", "python_blocks")
    samples = [{key: one[key] for key in one if key not in silent} for one in hour(0)]
    assert set(soak.slopes(samples, 60.0)) == {"anonymous_mib", "rss_mib", "fds", "threads"}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallinfo2 is glibc's")
def test_what_is_in_use(soak: ModuleType) -> None:
    before = soak.in_use()
    held = np.ones(3 * 2**20, np.uint8)
    objects = [str(number) for number in range(10_000)]
    after = soak.in_use()
    assert after["in_use_mib"] - before["in_use_mib"] == pytest.approx(3, abs=0.5)
    assert after["python_blocks"] - before["python_blocks"] == pytest.approx(10_000, abs=500)
    del held, objects
    freed = soak.in_use()
    assert freed["in_use_mib"] == pytest.approx(before["in_use_mib"], abs=0.5)


def test_a_short_run_decides_nothing(soak: ModuleType) -> None:
    samples = [one for one in hour(0) if one["seconds"] < 600]
    found = soak.slopes(samples, 10.0)
    assert {found[name]["verdict"] for name in soak.TARGETS} == {"undecided"}
    few = soak.slopes([one for one in samples if one["seconds"] < 60], 1.0)["anonymous_mib"]
    assert few["per_hour"] is None
    assert few["interval_per_hour"] == [None, None]
