"""The folder of a Ray that is started here goes, also after its owner was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warpzone.dist.ray_folder import ray_folder

OWNER = """
import time
from warpzone.dist.ray_folder import ray_folder
with ray_folder() as place:
    print(place, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_it_goes_with_its_owner(parent: Path) -> None:
    with ray_folder() as place:
        (Path(place) / "session").mkdir()
        assert [folder.name for folder in parent.iterdir()] == [Path(place).name]
        assert Path(place).name.startswith("wz-ray-")
        assert Path(place).stat().st_mode & 0o777 == 0o700
    assert not list(parent.iterdir())


def test_that_of_a_killed_owner_goes_when_the_next_one_starts(parent: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(parent)},
    ) as owner:
        try:
            assert owner.stdout is not None
            left = Path(owner.stdout.readline().strip())
            assert left.parent == parent
            (left / "session").mkdir()
            with ray_folder():
                assert left.is_dir(), "its owner lives"
        finally:
            owner.send_signal(signal.SIGKILL)
    assert left.is_dir()
    with ray_folder() as place:
        assert not left.exists()
        assert Path(place).is_dir()


def test_what_is_not_known_to_be_left_stays(parent: Path) -> None:
    other = parent / "elsewhere"
    other.mkdir(0o700)
    (other / ".lock").touch()
    stays = [parent / "wz-ray-open", parent / "wz-ray-unlocked", parent / "wz-ray-link"]
    stays[0].mkdir()
    (stays[0] / ".lock").touch()
    stays[0].chmod(0o755)
    stays[1].mkdir(0o700)
    stays[2].symlink_to(other)
    with ray_folder():
        assert all(os.path.lexists(folder) for folder in stays)
    assert all(os.path.lexists(folder) for folder in (*stays, other / ".lock"))
