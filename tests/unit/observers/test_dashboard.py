"""When a run says where its dashboard is."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpzone.config import TrainConfig
from warpzone.observers.dashboard import DashboardObserver

#: A server that listens as soon as the file `go` is there, and ends with its standard input.
LATE = """
import pathlib, socket, sys, time
while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.02)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
sys.stdin.read()
"""
ERR = pytest.CaptureFixture[str]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[DashboardObserver]:
    monkeypatch.delenv("WARPZONE_DASHBOARD_TOKEN", raising=False)
    observer = DashboardObserver(TrainConfig(dashboard=True, dashboard_port=0))
    yield observer
    if observer.process is not None:
        observer.process.kill()
        observer.process.wait()


def run_in(folder: Path) -> Any:
    return SimpleNamespace(
        folder=SimpleNamespace(path=folder), config=SimpleNamespace(runs_dir=str(folder))
    )


def start_instead(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    started = subprocess.Popen

    def start(_: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        return started([sys.executable, "-c", *words], **settings)

    monkeypatch.setattr(subprocess, "Popen", start)


def test_the_address_is_said_once_it_listens(
    served: DashboardObserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: ERR
) -> None:
    start_instead(monkeypatch, LATE, str(served.port), str(tmp_path / "go"))
    served.started(run_in(tmp_path))
    assert capfd.readouterr().err == ""
    (tmp_path / "go").touch()
    served.announcing.join(120)
    assert capfd.readouterr().err == f"[dashboard] http://127.0.0.1:{served.port}/\n"
    socket.create_connection(("127.0.0.1", served.port), timeout=10).close()
    served.ended(run_in(tmp_path), "normal")


def test_a_run_that_ends_before_says_nothing(
    served: DashboardObserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: ERR
) -> None:
    start_instead(monkeypatch, LATE, str(served.port), str(tmp_path / "go"))
    served.started(run_in(tmp_path))
    served.ended(run_in(tmp_path), "normal")
    assert not served.announcing.is_alive()
    assert capfd.readouterr().err == ""


def test_a_dashboard_that_fails_is_named(
    served: DashboardObserver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: ERR
) -> None:
    start_instead(monkeypatch, "raise SystemExit(1)")
    served.started(run_in(tmp_path))
    served.announcing.join(120)
    log = tmp_path / "logs" / "dashboard.log"
    assert capfd.readouterr().err == f"[dashboard][warn] it did not start; see {log}\n"
