"""A full disk, no memory, and a folder that is taken away: one sentence each, and what can be saved
is."""

import errno
import json
import os
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import Recorder, tiny

from warpzone.observers.metrics import MetricsObserver
from warpzone.run import files, reserve
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.folder import FolderGoneError
from warpzone.run.reserve import Reserve
from warpzone.run.resume import find_start
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


def test_a_folder_taken_away_in_the_middle_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run"))
    flush = run.folder.flush

    def gone() -> None:
        flush()
        shutil.rmtree(run.folder.path)

    monkeypatch.setattr(run.folder, "flush", gone)
    with pytest.raises(FileNotFoundError):
        run.save()
    run.close()
    assert not run.folder.path.exists()


# --- rows ----------------------------------------------------------------------------------------
class Fails:
    """An update whose row fails in some way; the run ends, and goes on in another one."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch

    def run(self, **changes: Any) -> Run:
        return Run(tiny(runs_dir=str(self.folder), run_name="run", log_interval=1, **changes))

    def at(self, update: int, method: str, error: Exception, name: str = "") -> Run:
        """The run after its end."""
        run = self.run()
        owner = run.recorder if method == "row" else run.folder
        right = getattr(owner, method)

        def wrong(*args: Any) -> Any:
            if run.global_update == update and name in ("", args[0]):
                self.monkeypatch.setattr(owner, method, right)
                raise error
            return right(*args)

        self.monkeypatch.setattr(owner, method, wrong)
        with pytest.raises(type(error)):
            run.train(Recorder())  # type: ignore[arg-type]
        return run


@pytest.fixture
def fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fails:
    return Fails(tmp_path, monkeypatch)


def updates(run: Run) -> list[int]:
    lines = (run.folder.path / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["update"] for line in lines]


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("method", "error", "name"),
    [
        ("append", NO_SPACE, "metrics.jsonl"),
        ("append", NO_SPACE, "episodes.jsonl"),
        ("row", MemoryError(), ""),
    ],
)
def test_the_update_of_the_last_checkpoint_has_its_row(
    fails: Fails, method: str, error: Exception, name: str
) -> None:
    run = fails.at(2, method, error, name)
    assert stems(run) == ["0000002"]
    assert updates(run) == [1, 2]
    found = json.loads((run.folder.path / "metrics.jsonl").read_text().splitlines()[-1])
    assert found["global_step"] == run.global_step
    assert ("entropy" in found) == (method == "append")
    start = find_start(run.config.replace(resume="auto"), lambda _: None, set())
    again = Run(run.config, start=start)
    again.learn(Recorder())  # type: ignore[arg-type]
    again.close()
    assert updates(again) == [1, 2, 3]


def test_a_run_that_fails_before_its_first_update_adds_no_row(tmp_path: Path) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run", max_steps=64, checkpoint_interval=1))
    run.learn(Recorder())  # type: ignore[arg-type]
    run.close()
    config = run.config.replace(resume="auto", max_steps=96)
    again = Run(config, start=find_start(config, lambda _: None, set()))
    again.saver.save_last("exception")
    again.close()
    assert updates(again) == [1, 2]


def test_a_row_that_cannot_be_written_even_then_is_mentioned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run"))

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(run.folder, "append", full)
    with pytest.raises(MemoryError):
        run.train(Recorder())  # type: ignore[arg-type]
    said = capsys.readouterr().err
    assert "the row of update 1 is missing: there is no memory for it" in said
    assert stems(run) == ["0000001"]


def test_without_memory_for_the_last_checkpoint_the_one_before_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run"))
    run.save()
    run.budget.global_update = 1

    def full(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("warpzone.train.saving.state_of", full)
    run.saver.save_last("exception")
    run.close()
    assert "no last checkpoint: there is no memory for it" in capsys.readouterr().err
    assert stems(run) == ["0000000"]


def test_a_sink_without_memory_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its library is loaded when it is first needed, and may not find the place."""

    def full(*_: object) -> None:
        raise ImportError("libarrow.so: failed to map segment from shared object")

    monkeypatch.setattr("warpzone.metrics.sinks.parquet._save", full)
    config = tiny(runs_dir=str(tmp_path), run_name="run")
    run = Run(config, [MetricsObserver(config)])
    run.train(Recorder())  # type: ignore[arg-type]
    assert "parquet cannot be written and is left out" in capsys.readouterr().err
    assert updates(run) == [1, 2, 3]
