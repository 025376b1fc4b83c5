"""Metrics and health as a user meets them on the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from warpzone.cli.main import main  # noqa: E402

TINY = ["--num-envs", "8", "--rollout-steps", "16", "--minibatch", "64", "--size", "42"]
TINY += ["--hidden-size", "32", "--device", "cpu", "--max-steps", "256", "--run-name", "run"]
HELPERS = Path(__file__).parents[1] / "helpers"
OUT = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def test_a_stalled_run_ends_with_exit_code_1(tmp_path: Path, capsys: OUT) -> None:
    # Less time than anything takes: the first decision of the network is a stall already.
    flags = ["--stall-timeout", "0.0001", "--fail-on-stall", "--runs-dir", str(tmp_path)]
    assert main(["train", *TINY, *flags]) == 1
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("warpzone train: no progress for")
    assert "(--fail-on-stall)" in said
    folder = tmp_path / "run"
    assert list((folder / "traces").glob("stall_*.log"))
    heartbeats = (folder / "heartbeat.jsonl").read_text().splitlines()
    assert json.loads(heartbeats[-1])["phase"] == "interrupt"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--enable-tensorboard"], "--enable-tensorboard needs the package tensorboard"),
        (["--wandb-project", "x"], "--wandb-project needs the package wandb"),
        (["--fail-on-stall", "--stall-timeout", "0"], "--fail-on-stall needs a --stall-timeout"),
        (["--slow-step-trace-window", "-1"], "--slow-step-trace-window must be above 0"),
    ],
)
def test_refusals(
    tmp_path: Path,
    capsys: OUT,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    sentence: str,
) -> None:
    for package in ("tensorboard", "wandb"):
        monkeypatch.setitem(sys.modules, package, None)
    assert main(["train", *TINY, *flags, "--runs-dir", str(tmp_path)]) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


STUCK = """
import sys, threading
from tiny_runs import Recorder, tiny
from warpzone.train.loop import Run
from warpzone.health import stall
from warpzone.observers.health import HealthObserver

stall.GRACE = 0.2
config = tiny(runs_dir=sys.argv[1], run_name="run", stall_timeout=0.5, fail_on_stall=True)
run = Run(config, [HealthObserver(config)])
run.collector.groups[0].finish = lambda: threading.Event().wait()
run.train(Recorder())
"""


def test_a_run_that_hangs_for_good_is_left(tmp_path: Path) -> None:
    # The main thread waits for an engine that never answers: only leaving the process helps.
    done = subprocess.run(
        [sys.executable, "-c", STUCK, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(HELPERS)])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr
    assert "[train][warn] no progress for" in done.stderr
    assert "did not end within 0.2 s; the process exits" in done.stderr
    assert "Traceback" not in done.stderr
