"""A run that somebody packed, with links in the place of folders and with pipes deep inside."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import make_run
from safetensors.torch import save_file
from snapshots import WEIGHTS, snapshot, stem
from tiny_runs import tiny

from warpzone.cli.main import main
from warpzone.config import ConfigError
from warpzone.dashboard.rundata import RunData
from warpzone.run import control, names, safe
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.files import sha256
from warpzone.run.folder import RunFolder
from warpzone.run.loading import find_weights
from warpzone.run.opening import listing, names_in, open_file, open_folder, written
from warpzone.run.reader import RunReader, latest_run
from warpzone.run.resume import best_of, find_start, named
from warpzone.run.safe import plain_name, read_header, read_state, read_weights
from warpzone.run.sidecar import CheckpointError, read_sidecar

LINK = "link, which is not followed"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with everything that could be read or listed."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    Checkpoints(folder).write(snapshot(1))
    (folder / "secret.mp4").write_bytes(b"video")
    (folder / "state.json").write_text('{"doing": "paused", "paused": true}')
    return folder


@pytest.fixture
def run(tmp_path: Path, elsewhere: Path) -> Path:
    path = make_run(tmp_path / "runs")
    for name in (names.CHECKPOINTS, names.VIDEOS, names.CONTROL):
        (path / name).symlink_to(elsewhere)
    return path


# --- reading ----------------------------------------------------------------------------------
def test_linked_folders_have_nothing_to_list(run: Path) -> None:
    for below in (names.CHECKPOINTS, names.VIDEOS, names.CONTROL):
        assert listing(run, below, (".json", ".mp4", ".safetensors")) == []
        with pytest.raises(OSError, match=LINK):
            names_in(run, below)
    reader = RunReader(run)
    assert reader.weights() == reader.sidecars() == reader.videos() == []
    assert not reader.state()["paused"]
    assert written(run, Path(names.CONTROL) / names.STATE) == 0.0
    assert latest_run(run.parent) is None


def test_the_dashboard_shows_nothing_of_linked_folders(run: Path) -> None:
    data = RunData(run)
    data.refresh()
    assert (data.video_names, data.videos, data.checkpoints) == ({}, [], [])


def test_plain_folders_are_listed_as_before(tmp_path: Path, elsewhere: Path) -> None:
    (elsewhere / ".hidden.mp4").write_bytes(b"")
    (elsewhere / "link.mp4").symlink_to(elsewhere / "secret.mp4")
    (elsewhere / "folder.mp4").mkdir()
    (file,) = listing(tmp_path, "elsewhere", (".mp4",))
    (same,) = listing(elsewhere, "", (".mp4",))
    assert (file.name, same.name, file.bytes) == ("elsewhere/secret.mp4", "secret.mp4", 5)
    assert file.time == written(elsewhere, "secret.mp4") == written(tmp_path, file.name) > 0
    assert written(elsewhere, "link.mp4") == (elsewhere / "link.mp4").lstat().st_mtime
    with pytest.raises(OSError, match="not inside the run"), open_folder(tmp_path, "../x"):
        pass


READERS: dict[str, Callable[[Path], object]] = {
    "header": lambda folder: read_header(folder / f"{stem(1)}.safetensors"),
    "weights": lambda folder: read_weights(folder / f"{stem(1)}.safetensors", {}),
    "hash": lambda folder: sha256(folder / f"{stem(1)}.safetensors"),
    "names": lambda folder: Checkpoints(folder).stems(),
    "latest": lambda folder: Checkpoints(folder).latest(),
    "side-car": lambda folder: read_sidecar(folder / f"{stem(1)}.json"),
    "state": lambda folder: read_state(folder / f"{stem(1)}.state.pt"),
    "best": lambda folder: best_of(folder, None, print),
    "named": lambda folder: named(folder / stem(1)),
    "run": lambda folder: find_weights(folder.parent),
    "file": lambda folder: find_weights(folder / f"{stem(1)}.safetensors"),
    "open": lambda folder: open_file(folder, f"{stem(1)}.json"),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_no_checkpoint_is_read_through_a_linked_folder(
    run: Path, reader: Callable[[Path], object]
) -> None:
    with pytest.raises((OSError, CheckpointError, ConfigError), match=LINK):
        reader(run / names.CHECKPOINTS)


def test_a_search_passes_linked_checkpoints_over(run: Path, tmp_path: Path) -> None:
    said: list[str] = []
    config = tiny(runs_dir=str(tmp_path / "none"), checkpoint_root=str(run), resume="auto")
    assert find_start(config, said.append).checkpoint is None
    given = config.replace(checkpoint_root=str(run / names.CHECKPOINTS))
    assert find_start(given, said.append).checkpoint is None
    assert any(line.startswith("[train][warn] skipped ") and LINK in line for line in said)


def test_a_command_says_so_in_one_sentence(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["checkpoints", "list", str(run / names.CHECKPOINTS)]) == 1
    said = capsys.readouterr()
    assert LINK in said.err
    assert "Traceback" not in said.err
    assert stem(1) not in said.out


def test_commands_in_a_linked_inbox_are_left_there(run: Path, elsewhere: Path) -> None:
    command = control.Command.new("me", "save")
    (elsewhere / f"{command.id}.json").write_text("{}")
    assert control.take(run) == ([], [])
    assert (elsewhere / f"{command.id}.json").exists()


def test_what_was_checked_is_what_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can replace the file between the two gains nothing."""
    path, other = tmp_path / "x.safetensors", tmp_path / "other"
    expected = {plain_name(name): tensor for name, tensor in WEIGHTS.items()}
    save_file(expected, path)
    save_file({name: tensor + 1 for name, tensor in expected.items()}, other)
    checked = safe._tensor_end

    def replaced(*arguments: Any) -> int:
        path.unlink(missing_ok=True)
        path.symlink_to(other)
        return checked(*arguments)

    monkeypatch.setattr(safe, "_tensor_end", replaced)
    loaded = read_weights(path, expected)
    assert path.is_symlink()
    assert all(bool((loaded[name] == expected[name]).all()) for name in expected)


# --- writing ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "logs/dashboard.log", "wall/.latest.bin", "tensorboard/a/b/events"]
)
@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFLNK])
@pytest.mark.parametrize("way", ["create", "reopen"])
def test_nothing_but_files_and_folders_is_trained_in(
    tmp_path: Path, name: str, kind: int, way: str
) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="planted")
    run = tmp_path / "planted"
    (run / name).parent.mkdir(parents=True)
    if kind == stat.S_IFLNK:
        (run / name).symlink_to(tmp_path / "nowhere")
    else:
        os.mknod(run / name, kind | 0o600)
    problem = "is a link" if kind == stat.S_IFLNK else "is neither a plain file nor a folder"
    with pytest.raises(ConfigError, match=f"{name} {problem}"):
        RunFolder.create(config) if way == "create" else RunFolder.reopen(run)
    assert not (run / ".lock").exists()


def test_the_links_of_wandb_are_its_own(tmp_path: Path) -> None:
    run = RunFolder.create(tiny(runs_dir=str(tmp_path), run_name="watched"))
    run.close()
    (run.path / "wandb" / "run-1").mkdir(parents=True)
    (run.path / "wandb" / "latest-run").symlink_to("run-1")
    RunFolder.reopen(run.path).close()
    # Only there, and only if the folder is none itself.
    (run.path / "logs" / "wandb").mkdir(parents=True)
    (run.path / "logs" / "wandb" / "latest-run").symlink_to("run-1")
    with pytest.raises(ConfigError, match="logs/wandb/latest-run is a link"):
        RunFolder.reopen(run.path)
    (run.path / "logs" / "wandb" / "latest-run").unlink()
    (run.path / "wandb").rename(tmp_path / "moved")
    (run.path / "wandb").symlink_to(tmp_path / "moved")
    with pytest.raises(ConfigError, match="wandb is a link"):
        RunFolder.reopen(run.path)
