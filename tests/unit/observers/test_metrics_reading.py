"""The examples of docs/reading-metrics.md, on a real run."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from observed_runs import observed

from warpzone.observers.health import HealthObserver
from warpzone.observers.metrics import MetricsObserver
from warpzone.run import reader
from warpzone.train.loop import Run

PAGE = Path(__file__).parents[3] / "docs" / "reading-metrics.md"
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", PAGE.read_text(), re.S)
JQ = [text for kind, text in BLOCKS if kind == "sh" and "jq " in text]
PYTHON = [text for kind, text in BLOCKS if kind == "python"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run whose metrics are in two parts."""
    folder = tmp_path_factory.mktemp("reading") / "runs"
    run = observed(
        folder, HealthObserver, MetricsObserver, max_steps=20 * 32, metrics_rotate_mb=0.05
    )
    assert len(reader.parts(run.folder.path, "metrics.jsonl")) == 1
    return run


def told(text: str, run: Run) -> str:
    """The example with the run's own folder."""
    return text.replace("runs/NAME", str(run.folder.path))


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@pytest.mark.parametrize("text", JQ, ids=range(len(JQ)))
def test_jq(text: str, run: Run) -> None:
    shell = ["bash", "-o", "pipefail", "-c", told(text, run)]
    out = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stderr == ""
    assert out.stdout.strip()
    if "zcat" in text:
        assert len(out.stdout.splitlines()) == 20


@pytest.mark.parametrize("text", PYTHON, ids=range(len(PYTHON)))
def test_python(text: str, run: Run) -> None:
    for package in ("pandas", "polars"):
        if f"import {package}" in text and importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    shown = "\nassert len(rows) == 20" if "rows = " in text else ""
    out = subprocess.run(
        [sys.executable, "-c", told(text, run) + shown], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
