"""A full disk and a folder that is taken away: one sentence each, and what can be saved is."""

import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest
from tiny_runs import Recorder, tiny

from warpzone.run import files, reserve
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.folder import FolderGoneError
from warpzone.run.reserve import Reserve
from warpzone.train.loop import Run

Usage = namedtuple("Usage", "total used free")
needs_reserve = pytest.mark.skipif(
    not hasattr(os, "posix_fallocate"), reason="this system sets no space aside"
)


class Disk:
    """A disk that has only so much room for a folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.free = 1 << 40
        monkeypatch.setattr("shutil.disk_usage", self.usage)

    def taken(self) -> int:
        found = [path for path in self.folder.rglob("*") if path.is_file()]
        return sum(path.stat().st_size for path in found)

    def usage(self, _: Path) -> Usage:
        return Usage(1 << 41, 0, max(0, self.free - self.taken()))

    def fill(self) -> None:
        """Somebody else takes the rest."""
        self.free = self.taken()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


def stems(run: Run) -> list[str]:
    return [stem[-7:] for stem in Checkpoints(run.folder.checkpoints).stems()]


@needs_reserve
def test_the_last_checkpoint_has_its_space(
    tmp_path: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run"))
    run.save()
    kept = run.folder.checkpoints / reserve.NAME
    assert kept.stat().st_size > 0
    assert kept.stat().st_blocks * 512 >= kept.stat().st_size  # Not a hole.
    run.budget.global_update = 1
    disk.fill()
    with pytest.raises(OSError, match="does not fit"):
        run.save()
    assert kept.exists()
    run.saver.save_last("exception")
    run.close()
    assert "the space kept back for the last checkpoint is used" in capsys.readouterr().err
    assert stems(run) == ["0000001", "0000000"]
    Checkpoints(run.folder.checkpoints).open("ppo_world1_stage1_0000001").verify()
    assert not kept.exists()


def test_without_a_reserve_the_one_before_stays(
    tmp_path: Path, disk: Disk, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run"))
    run.save()
    run.saver.reserve.free()
    run.budget.global_update = 1
    disk.fill()
    run.saver.save_last("exception")
    run.close()
    assert "no last checkpoint: a checkpoint of" in capsys.readouterr().err
    assert stems(run) == ["0000000"]


def test_a_run_that_ends_well_leaves_no_reserve(tmp_path: Path) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run", checkpoint_interval=1))
    run.train(Recorder())  # type: ignore[arg-type]
    assert not (run.folder.checkpoints / reserve.NAME).exists()


@needs_reserve
def test_the_reserve_follows_the_size_and_leaves_others_space(tmp_path: Path, disk: Disk) -> None:
    kept = Reserve(tmp_path)
    kept.keep(1000)
    kept.keep(5000)
    assert kept.path.stat().st_size == 5000
    kept.keep(2000)
    assert kept.path.stat().st_size == 2000
    disk.free = disk.taken() + files.SPARE
    kept.keep(3000)
    assert kept.path.stat().st_size == 2000
    assert kept.free()
    assert not kept.free()


@pytest.mark.parametrize("way", ["removed", "moved", "replaced"])
def test_a_folder_taken_away_is_a_sentence(tmp_path: Path, way: str) -> None:
    """And nothing is made in its place, which would look like a run and be none."""
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run"))
    path = run.folder.path
    shutil.rmtree(path) if way == "removed" else path.rename(tmp_path / "elsewhere")
    if way == "replaced":
        path.mkdir()
    else:
        with pytest.raises(FolderGoneError, match="removed or moved while the run was training"):
            run.folder.append("metrics.jsonl", [{"update": 1}])
    with pytest.raises(FolderGoneError, match="removed or moved while the run was training"):
        run.save()
    run.close()
    assert path.exists() == (way == "replaced")
    assert way != "replaced" or list(path.iterdir()) == []
