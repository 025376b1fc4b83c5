"""A module behind a run: it ends with its own work, or with its parent, whichever comes first."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpzone.run.behind import NICE

MODULE = """
import os, sys, time
print(__name__, sys.argv[1:], os.nice(0), flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    (tmp_path / "sleeper.py").write_text(MODULE)
    made: list[subprocess.Popen[str]] = []
    yield made
    for process in made:
        with process:
            process.kill()


def start(started: list[subprocess.Popen[str]], folder: Path, seconds: str) -> str:
    """Starts the module, and waits for what it prints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "warpzone.run.behind", "sleeper", seconds],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    started.append(process)
    assert process.stdout is not None
    return process.stdout.readline()


def test_it_ends_with_the_module(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    expected = min(os.nice(0) + NICE, 19)
    assert start(started, tmp_path, "0") == f"__main__ ['0'] {expected}\n"
    # The parent still holds the other end of stdin.
    assert started[0].wait(60) == 0


def test_it_ends_with_its_parent(tmp_path: Path, started: list[subprocess.Popen[str]]) -> None:
    assert start(started, tmp_path, "3600")
    assert started[0].poll() is None
    assert started[0].stdin is not None
    started[0].stdin.close()
    assert started[0].wait(60) == 1
