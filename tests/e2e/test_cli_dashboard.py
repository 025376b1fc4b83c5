"""`warpzone dashboard`, and training with `--dashboard`."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from websockets.sync.client import connect

from warpzone.cli.main import main
from warpzone.config import TrainConfig
from warpzone.observers.dashboard import DashboardObserver

TINY = [
    *("--num-envs", "4", "--groups", "2", "--num-threads", "1", "--rollout-steps", "8"),
    *("--minibatch", "16", "--epochs", "1", "--size", "36", "--encoder-width", "0.125"),
    *("--hidden-size", "16", "--device", "cpu", "--max-steps", "50000000"),
]


def cli(*words: str) -> list[str]:
    return [sys.executable, "-m", "warpzone.cli.main", *words]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(port: int, there: bool) -> None:
    until = time.monotonic() + 300
    while listens(port) is not there:
        assert time.monotonic() < until
        time.sleep(0.1)


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> tuple[int, str]:
        return main(words), capsys.readouterr().err

    code, text = said("dashboard", str(tmp_path / "nowhere"))
    assert (code, text.startswith("warpzone dashboard: there is no folder")) == (2, True)
    code, text = said("dashboard", str(tmp_path), "--port", "70000")
    assert (code, "--port must be in 1..65535" in text) == (2, True)
    code, text = said("train", "--control", *TINY, "--runs-dir", str(tmp_path))
    assert (code, "add --dashboard" in text) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        flags = ["--dashboard", "--dashboard-port", port, "--runs-dir", str(tmp_path)]
        code, text = said("train", *TINY, *flags)
        alone = said("dashboard", str(tmp_path), "--port", port)
    assert alone == (
        1,
        f"warpzone dashboard: cannot listen on 127.0.0.1:{port}: Address already in use.\n",
    )
    assert (code, "choose another --dashboard-port" in text) == (2, True)
    assert list(tmp_path.iterdir()) == []


def test_a_dashboard_beside_a_run(tmp_path: Path) -> None:
    run = SimpleNamespace(
        folder=SimpleNamespace(path=tmp_path), config=SimpleNamespace(runs_dir=str(tmp_path))
    )
    served = DashboardObserver(TrainConfig(dashboard=True, dashboard_port=0))
    served.started(run)
    assert served.process is not None
    wait_until(served.port, there=True)
    served.ended(run, "normal")
    assert served.process.poll() is not None
    assert not listens(served.port)


@pytest.mark.parametrize("given", ["", "a-token-from-the-environment"])
def test_a_token_from_the_environment_is_not_printed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    given: str,
) -> None:
    monkeypatch.setenv("WARPZONE_DASHBOARD_TOKEN", given)
    run = SimpleNamespace(
        folder=SimpleNamespace(path=tmp_path), config=SimpleNamespace(runs_dir=str(tmp_path))
    )
    served = DashboardObserver(TrainConfig(dashboard=True, control=True, dashboard_port=0))
    served.started(run)
    served.announcing.join(300)
    served.ended(run, "normal")
    said = capfd.readouterr().err
    assert (served.token in said) is not bool(given)
    assert ("that of WARPZONE_DASHBOARD_TOKEN" in said) is bool(given)


def test_the_dashboard_of_a_run_that_is_killed_ends_too(tmp_path: Path) -> None:
    words = ["--dashboard", "--control", "--dashboard-port", "0", "--runs-dir", str(tmp_path)]
    process = subprocess.Popen(
        cli("train", *TINY, *words),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "MARIO_ALLOW_CPU_AUTO": "1", "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stderr is not None
        found = None
        for line in process.stderr:
            found = re.match(r"\[dashboard\] http://127\.0\.0\.1:(\d+)/#token=([\w-]+)$", line)
            if found:
                break
        assert found
        port, token = int(found[1]), found[2]
        wait_until(port, there=True)
        with connect(f"ws://127.0.0.1:{port}/ws", open_timeout=120) as link:
            link.send(f'{{"type": "hello", "token": "{token}"}}')
            assert '"allowed": true' in str(link.recv(timeout=120))
        (log,) = tmp_path.glob("*/logs/dashboard.log")
        assert token not in log.read_text()
        process.kill()
        wait_until(port, there=False)
    finally:
        process.kill()
        process.wait()
