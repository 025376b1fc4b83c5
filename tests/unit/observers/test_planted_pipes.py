"""Pipes and links where observers write: none is waited for, none is followed."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from warpzone.config import TrainConfig
from warpzone.metrics.sinks.wandb import ID, WandbSink
from warpzone.observers import wall
from warpzone.observers.dashboard import DashboardObserver
from warpzone.run import control
from warpzone.run.names import CONTROL, STATE, WALL, WALL_PICTURES

PICTURES = np.zeros((1, 1, 2, 2), np.uint8)


def run_in(folder: Path) -> Any:
    return SimpleNamespace(
        folder=SimpleNamespace(path=folder), config=SimpleNamespace(runs_dir=str(folder))
    )


@pytest.mark.limit(30)
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_pictures_wait_for_no_pipe(tmp_path: Path, kind: str) -> None:
    (tmp_path / WALL).mkdir()
    planted, secret = tmp_path / WALL / f".{WALL_PICTURES}", tmp_path / "secret"
    secret.write_text("of another folder")
    os.mkfifo(planted) if kind == "pipe" else planted.symlink_to(secret)
    wall._write(run_in(tmp_path), {"shape": [1, 1, 2, 2]}, PICTURES)
    written = (tmp_path / WALL / WALL_PICTURES).read_bytes()
    assert written == b'{"shape": [1, 1, 2, 2]}\n' + bytes(4)
    assert secret.read_text() == "of another folder"
    assert not planted.exists()


def test_pictures_are_not_written_into_a_linked_folder(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / WALL).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        wall._write(run_in(tmp_path), {}, PICTURES)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.limit(30)
def test_the_state_waits_for_no_pipe(tmp_path: Path) -> None:
    (tmp_path / CONTROL).mkdir()
    os.mkfifo(tmp_path / CONTROL / f".{STATE}")
    control.write_state(tmp_path, {"doing": "running"})
    assert control.read_state(tmp_path) == {"doing": "running"}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> DashboardObserver:
    """A dashboard whose process only complains."""
    started = subprocess.Popen

    def start(_: list[str], **settings: Any) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-c", "import sys; sys.exit('not today')"]
        return started(words, **settings)

    monkeypatch.setattr(subprocess, "Popen", start)
    return DashboardObserver(TrainConfig(dashboard=True, dashboard_port=0))


@pytest.mark.limit(60)
@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_the_log_of_the_dashboard_is_a_plain_file(
    tmp_path: Path, served: DashboardObserver, kind: str
) -> None:
    logs, secret = tmp_path / "logs", tmp_path / "secret"
    secret.mkdir()
    if kind == "folder":
        logs.symlink_to(secret)
    else:
        logs.mkdir()
        planted = logs / "dashboard.log"
        os.mkfifo(planted) if kind == "pipe" else planted.symlink_to(secret / "log")
    with pytest.raises(OSError, match=r"link|plain|No such device"):
        served.started(run_in(tmp_path))
    assert served.process is None
    assert list(secret.iterdir()) == []


def test_the_log_of_the_dashboard_is_appended_to(
    tmp_path: Path, served: DashboardObserver, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "dashboard.log").write_text("before\n")
    served.started(run_in(tmp_path))
    served.announcing.join(60)
    served.ended(run_in(tmp_path), "normal")
    assert (tmp_path / "logs" / "dashboard.log").read_text() == "before\nnot today\n"
    capfd.readouterr()


# --- the id of W&B ----------------------------------------------------------------------------
class Heard:
    """Stands in for the wandb package."""

    Error = type("Error", (Exception,), {})

    def init(self, **settings: Any) -> str:
        return str(settings["id"])


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", Heard())


@pytest.mark.usefixtures("wandb")
def test_the_id_stays_with_the_run(tmp_path: Path) -> None:
    made = WandbSink(tmp_path, "mario", {}).run
    assert len(made) == 32
    assert (tmp_path / ID).read_text() == made == WandbSink(tmp_path, "mario", {}).run
    (tmp_path / ID).write_text("my-own_1\n")
    assert WandbSink(tmp_path, "mario", {}).run == "my-own_1"


@pytest.mark.limit(30)
@pytest.mark.usefixtures("wandb")
@pytest.mark.parametrize("kind", ["link", "pipe", "large", "strange", "empty"])
def test_an_id_is_short_and_in_a_plain_file(tmp_path: Path, kind: str) -> None:
    path, secret = tmp_path / ID, tmp_path / "secret"
    secret.write_text("hunter2")
    if kind == "link":
        path.symlink_to(secret)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.write_text({"large": "a" * 257, "strange": "../../x", "empty": ""}[kind])
    with pytest.raises(OSError, match=r"link|plain|more than 256|holds no id") as caught:
        WandbSink(tmp_path, "mario", {})
    assert "hunter2" not in repr(caught.value)
