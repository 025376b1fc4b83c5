"""Tests that hang fail."""

import os
import subprocess
import sys
from pathlib import Path

import limits
import pytest

TESTS = Path(__file__).parents[2]
HANGING = """
import time
import pytest

@pytest.mark.limit(0.5)
def test_waits_for_ever():
    time.sleep(1000)

@pytest.fixture
def never():
    time.sleep(1000)

@pytest.mark.limit(0.5)
def test_is_never_set_up(never):
    pass

@pytest.mark.limit(60)
def test_passes():
    pass

@pytest.mark.limit(0.01)
@pytest.mark.long
def test_takes_its_time():
    time.sleep(0.1)
"""
DEAF = """
import signal
import time
import pytest

@pytest.mark.limit(0.5)
def test_hears_nothing():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(1000)
"""


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (folder / "test_one.py").write_text(text)
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(folder)),
            *("-c", os.devnull, "--rootdir", str(folder)),
            *("-o", f"pythonpath={TESTS / 'helpers'}", *options),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_test_that_hangs_fails_alone(tmp_path: Path) -> None:
    done = run(tmp_path, HANGING)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "1 error" in done.stdout
    assert done.stdout.count("it was not over after 0.5 seconds") >= 2


def test_a_process_that_hears_nothing_ends(tmp_path: Path) -> None:
    hard = ("-o", "faulthandler_timeout=2", "-o", "faulthandler_exit_on_timeout=true")
    done = run(tmp_path, DEAF, *hard)
    assert done.returncode != 0
    assert "Timeout (0:00:02)" in done.stderr
    assert "test_hears_nothing" in done.stderr


def test_every_test_has_a_limit(request: pytest.FixtureRequest) -> None:
    assert limits.limit_of(request.node) == limits.SECONDS
    assert float(request.config.getini("faulthandler_timeout")) > limits.SECONDS
    assert request.config.getini("faulthandler_exit_on_timeout")
