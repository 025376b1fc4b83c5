"""A run that somebody packed: links lead nowhere, pipes and bombs end nothing, for who reads it and
for who trains in it."""

import errno
import gzip
import json
import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import make_run
from tiny_runs import tiny

from warpzone.config import ConfigError
from warpzone.dashboard.catalogue import Catalogue
from warpzone.dashboard.rundata import RunData
from warpzone.dashboard.wall_file import WallFile
from warpzone.report.data import read_run
from warpzone.run import control, names
from warpzone.run.files import append_text, open_plain, own_folder, sha256
from warpzone.run.folder import RunFolder
from warpzone.run.jsonl import JsonLines
from warpzone.run.lock import LOCK, RunLock
from warpzone.run.opening import open_file, parse_json, read_file, read_json
from warpzone.run.reader import RunReader, read_rows
from warpzone.run.rotation import drop_after
from warpzone.run.safe import read_state
from warpzone.run.sidecar import CheckpointError, read_sidecar

SECRET = '{"update": 1, "secret": "of another folder"}\n'


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(SECRET)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "runs")


def put(path: Path, kind: str, target: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        os.mknod(path, stat.S_IFSOCK | 0o600)
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["link", "pipe", "socket", "folder"])
@pytest.mark.parametrize("name", ["metrics.jsonl", "logs/train.log", "config.json"])
def test_only_plain_files_are_opened(run: Path, secret: Path, name: str, kind: str) -> None:
    put(run / name, kind, secret)
    with pytest.raises(OSError, match=r"link|plain|No such device") as caught:
        open_file(run, name)
    assert caught.value.filename in (str(run / name), Path(name).name)


def test_folders_on_the_way_are_no_links(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "train.log").write_text(SECRET)
    (run / "logs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="behind a link"):
        open_file(run, "logs/train.log")
    for name in ("../secret", "logs/../../secret", str(tmp_path / "secret")):
        with pytest.raises(OSError, match="not inside the run"):
            open_file(run, name)


def test_the_runs_own_folder_may_be_a_link(run: Path, tmp_path: Path) -> None:
    (tmp_path / "shortcut").symlink_to(run)
    assert read_json(tmp_path / "shortcut", names.CONFIG)["stages"] == "1-1"


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_the_dashboard_shows_nothing_of_it(run: Path, secret: Path, kind: str) -> None:
    files = [names.METRICS, names.EPISODES, names.EVALS, names.HEARTBEAT, names.ANSWERS]
    files += ["logs/train.log", "videos/one.mp4", "checkpoints/x.json", "control/state.json"]
    files += ["wall/latest.bin"]
    for name in files:
        put(run / name, kind, secret)
    data = RunData(run)
    data.refresh()
    WallFile(run).read()
    (row,) = Catalogue(run.parent).scan().rows
    shown = [data.metrics.names(), data.log.lines, data.heartbeat, list(data.answers), data.evals]
    assert "of another folder" not in repr((row, shown, data.stages.grid()))
    assert data.video_names == {}
    assert data.metrics.count == 0


def test_the_report_reads_nothing_of_it(run: Path, secret: Path) -> None:
    put(run / names.METRICS, "link", secret)
    with pytest.raises(OSError, match="is a link"):
        read_run(run)


def test_checkpoints_are_no_links_and_no_pipes(tmp_path: Path, secret: Path) -> None:
    for kind in ("link", "pipe"):
        put(tmp_path / "x.json", kind, secret)
        put(tmp_path / "x.state.pt", kind, secret)
        with pytest.raises(CheckpointError, match="cannot be read"):
            read_sidecar(tmp_path / "x.json")
        with pytest.raises(CheckpointError, match="cannot be read"):
            read_state(tmp_path / "x.state.pt")
        with pytest.raises(OSError, match=r"link|plain"):
            sha256(tmp_path / "x.state.pt")


# --- writing ----------------------------------------------------------------------------------
def test_nothing_is_written_through_a_link(run: Path, secret: Path) -> None:
    put(run / names.CONTROL / ".state.json", "link", secret)
    control.write_state(run, {"doing": "running"})
    assert control.read_state(run) == {"doing": "running"}
    put(run / names.ANSWERS, "link", secret)
    with pytest.raises(OSError, match="is a link"):
        control.answer(run, control.Command.new("me", "save"), "done", "")
    put(run / LOCK, "link", secret)
    with pytest.raises(OSError, match="is a link"):
        RunLock(run)
    put(run / "wall" / "wanted", "link", secret)
    before = secret.stat().st_mtime_ns
    WallFile(run).want()
    assert (secret.read_text(), secret.stat().st_mtime_ns) == (SECRET, before)


@pytest.mark.parametrize("folder", [names.CONTROL, names.WALL])
def test_nothing_is_written_into_a_linked_folder(run: Path, tmp_path: Path, folder: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (run / folder).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        control.write_state(run, {}) if folder == names.CONTROL else own_folder(run / folder)
    if folder == names.CONTROL:
        with pytest.raises(OSError, match="is a link"):
            control.send(run, control.Command.new("me", "save"))
    WallFile(run).want()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["metrics.jsonl", "checkpoints", "wall/.latest.bin", ".lock"])
@pytest.mark.parametrize("way", ["create", "reopen"])
def test_a_run_with_links_is_not_trained_in(
    tmp_path: Path, secret: Path, name: str, way: str
) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="planted")
    run = tmp_path / "planted"
    run.mkdir()
    put(run / name, "link", secret)
    with pytest.raises(ConfigError, match=f"{name} is a link, and a run is not written"):
        RunFolder.create(config) if way == "create" else RunFolder.reopen(run)
    assert secret.read_text() == SECRET


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"plain file|No such device") as caught:
        append_text(tmp_path / "pipe", "x\n")
    assert caught.value.errno in (errno.EINVAL, errno.ENXIO)
    with pytest.raises(OSError, match=r"plain file|No such device"):
        open_plain(tmp_path / "pipe", os.O_WRONLY)


def test_the_inbox_is_private_whoever_made_it(run: Path) -> None:
    (run / names.CONTROL).mkdir(mode=0o775)
    (run / names.CONTROL).chmod(0o775)
    control.write_state(run, {"doing": "running"})
    assert stat.S_IMODE((run / names.CONTROL).stat().st_mode) == 0o700
    other = make_run(run.parent, "other")
    control.send(other, control.Command.new("me", "save"))
    assert stat.S_IMODE((other / names.CONTROL).stat().st_mode) == 0o700


# --- numbers ----------------------------------------------------------------------------------
@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", "-1e999", "9" * 400])
def test_numbers_nobody_can_work_with_are_none(text: str) -> None:
    assert parse_json(f'{{"a": {text}, "b": [{text}]}}') == {"a": None, "b": [None]}


def test_a_small_file_takes_little_memory_however_large_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(b"content")
    # More than there is anywhere: it would be refused if it were asked for.
    assert read_file(tmp_path, "small", 1 << 55) == b"content"
    with pytest.raises(OSError, match="more than 6 bytes"):
        read_file(tmp_path, "small", 6)


def test_what_is_no_plain_json_is_refused() -> None:
    for text in ("[" * 70 + "]" * 70, "[" * 100_000, '{"a": ' + "9" * 5000 + "}", "\xff", b"\xff"):
        with pytest.raises(ValueError):  # noqa: PT011 (its documented type, whatever it says)
            parse_json(text)
    assert parse_json("[" * 60 + "]" * 60)
    assert parse_json('{"\\ud800": "\\udfff x \\ud83d\\ude00"}') == {"?": "? x \U0001f600"}


def test_one_number_does_not_blank_the_page(run: Path) -> None:
    """A browser refuses the whole message for one NaN in it."""
    (run / names.CONFIG).write_text('{"stages": "1-1", "lr": NaN, "entropy": 1e999}')
    with (run / names.METRICS).open("a") as file:
        file.write('{"update": 99, "global_step": Infinity, "clear_rate": 1e400, "x": NaN}\n')
    catalogue = Catalogue(run.parent)
    listing = catalogue.scan()
    catalogue.adopt(listing)
    data = catalogue.get(next(iter(listing.paths)))
    assert data is not None
    data.refresh()
    news = {"rows": listing.rows, "last": data.metrics.last(), "config": catalogue.config(run)}
    json.dumps(news, allow_nan=False)
    assert data.metrics.count == 51


# --- bombs ------------------------------------------------------------------------------------
def bomb(path: Path, line: bytes, size: int) -> None:
    """Members of a gzip file can follow each other, so one is made and repeated."""
    member = gzip.compress(line * ((10 << 20) // len(line)))
    path.write_bytes(member * (size // (10 << 20)))


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize("line", [b"{}\n", b'{"update": 1}\n', b"\0"])
def test_a_bomb_takes_little_memory(run: Path, line: bytes) -> None:
    bomb(run / "metrics-0001.jsonl.gz", line, 300 << 20)
    assert (run / "metrics-0001.jsonl.gz").stat().st_size < 1 << 20
    before = memory()
    data = RunData(run)
    for _ in range(3):
        data.refresh()
    assert memory() - before < 128 << 20


def test_a_bomb_ends(run: Path) -> None:
    """What comes after it is read, and what was unpacked of it is bounded."""
    bomb(run / "metrics-0001.jsonl.gz", b" " * 9_999 + b"\n", 100 << 20)
    assert len(list(read_rows(run, names.METRICS))) == 50
    data = RunData(run)
    for _ in range(5):
        data.refresh()
    assert data.metrics.count == 50
    lines = JsonLines(run)
    assert drop_after(lines, names.METRICS, 100) == 49


def test_a_line_without_an_end_is_passed_over(run: Path) -> None:
    with (run / names.METRICS).open("ab") as file:
        file.write(b'{"update": 60, "a": "' + b"x" * (3 << 20) + b'"}\n{"update": 61}\n')
    assert [row["update"] for row in RunReader(run).rows(names.METRICS)][-2:] == [50, 61]


@pytest.mark.parametrize("step", ['"x"', "[]", "{}", "true", "null", "NaN"])
def test_rows_with_other_steps_stay_when_a_run_goes_on(run: Path, step: str) -> None:
    row: Any = f'{{"update": 60, "global_step": {step}}}\n'
    with (run / names.METRICS).open("a") as file:
        file.write(row)
    drop_after(JsonLines(run), names.METRICS, 100)
    assert [row["update"] for row in read_rows(run, names.METRICS)] == [1, 60]
