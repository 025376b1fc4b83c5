"""The script of a run: a file that a flag names is read once, one that a saved configuration or a
preset names never."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import tiny

from warpzone.cli.flags import resolve
from warpzone.config import ConfigError, TrainConfig, from_dict, from_saved, load_preset
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.folder import load_config
from warpzone.run.names import CONFIG
from warpzone.run.resume import find_start
from warpzone.run.sidecar import decode
from warpzone.train.loop import Run
from warpzone.train.session import begin
from warpzone.train.stopping import Stop

TEXT = "RIGHT:20,LEFT:3"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Readable as a script, so that whoever reads it succeeds."""
    path = tmp_path / "script.txt"
    path.write_text("RIGHT:20\nLEFT:3\n")
    return path


def resolved(*words: str) -> TrainConfig:
    return resolve(words, prog="warpzone train", about="", say=lambda _: None)


def test_a_flag_is_read_and_its_script_kept(file: Path, tmp_path: Path) -> None:
    words = ("--preset", "quick", "--device", "cpu", "--scripted-sequence", str(file))
    assert resolved(*words).scripted_sequence == TEXT
    config = tiny(scripted_sequence=str(file), runs_dir=str(tmp_path), run_name="run")
    with_run = Run(config)
    with_run.close()
    file.unlink()
    saved = load_config(tmp_path / "run")
    assert saved.scripted_sequence == TEXT
    again = resolved("--resume", "auto", "--runs-dir", str(tmp_path), "--run-name", "run")
    assert again.scripted_sequence == TEXT
    assert dataclasses.replace(again).scripted_sequence == TEXT


def test_a_saved_name_is_not_read(file: Path) -> None:
    saved = from_saved({"scripted_sequence": str(file)})
    assert saved.scripted_sequence == f"file:{file}"
    assert saved.replace(lr=1e-4).scripted_sequence == f"file:{file}"
    assert from_saved(json.loads(saved.to_json())) == saved
    for name in ("/etc/passwd", "/dev/zero", "nothing-there"):
        assert from_saved({"scripted_sequence": name}).scripted_sequence == f"file:{name}"
    for known in ("demo-eu", TEXT):
        assert from_saved({"scripted_sequence": known}).scripted_sequence == known


def test_a_preset_names_no_file(file: Path, tmp_path: Path) -> None:
    for values in ({"scripted_sequence": str(file)}, {"scripted_sequence": "RIGTH:3"}):
        with pytest.raises(ConfigError, match=r"only if --scripted-sequence names it|RIGTH"):
            from_dict(dict(values))
    preset = tmp_path / "others.toml"
    preset.write_text(f'scripted_sequence = "{file}"\n')
    with pytest.raises(ConfigError, match="a file is read only if --scripted-sequence names it"):
        load_preset(str(preset))
    # A name with a colon is no way around it.
    odd = tmp_path / "a:b"
    odd.write_text(TEXT)
    for read in (from_dict, from_saved):
        with pytest.raises(ConfigError, match="is not BUTTONS:FRAMES"):
            read({"scripted_sequence": str(odd)})
    assert tiny(scripted_sequence=str(odd)).scripted_sequence == TEXT


def test_a_script_that_is_no_text_is_refused() -> None:
    for read in (from_dict, from_saved):
        with pytest.raises((ConfigError, TypeError), match=r"scripted.sequence|a script is text"):
            read({"scripted_sequence": 5})
    with pytest.raises(ConfigError, match="a table of settings, not str"):
        from_dict("")  # type: ignore[arg-type]


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A run of somebody's that names a file of this machine."""
    secret = tmp_path / "secret"
    secret.write_text("user:hunter2\n")
    run = Run(tiny(runs_dir=str(tmp_path), run_name="run"))
    run.train(_Quiet())  # type: ignore[arg-type]
    path = run.folder.path
    values = json.loads((path / CONFIG).read_text()) | {"scripted_sequence": str(secret)}
    (path / CONFIG).write_text(json.dumps(values))
    checkpoints = Checkpoints(path / "checkpoints")
    for stem in checkpoints.stems():
        sidecar = checkpoints.open(stem).sidecar
        config: dict[str, Any] = {**sidecar.config, "scripted_sequence": str(secret)}
        checkpoints.commit(dataclasses.replace(sidecar, config=config))
    return path


class _Quiet:
    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None


def test_a_run_of_somebodys_is_looked_at_and_not_trained(planted: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    config = load_config(planted)
    assert config.scripted_sequence == f"file:{secret}"
    (stem, *_) = Checkpoints(planted / "checkpoints").stems()
    sidecar = decode((planted / "checkpoints" / f"{stem}.json").read_text())
    assert sidecar.train_config().scripted_sequence == f"file:{secret}"
    before = {path: path.read_bytes() for path in planted.rglob("*") if path.is_file()}
    again = config.replace(resume="auto", runs_dir=str(tmp_path), max_steps=1_000)
    for attempt in (lambda: find_start(again, lambda _: None), lambda: Run(again)):
        with pytest.raises(ValueError, match="read only if you name it yourself") as caught:
            attempt()
        assert "hunter2" not in repr(caught.value)
    assert {path: path.read_bytes() for path in planted.rglob("*") if path.is_file()} == before


def test_a_run_of_before_goes_on_with_the_script_named_again(planted: Path, file: Path) -> None:
    where = {"runs_dir": str(planted.parent), "max_steps": 1_000, "scripted_sequence": str(file)}
    config = load_config(planted).replace(resume="auto", **where)
    with pytest.raises(ConfigError, match=r"--scripted-sequence file:.*--resume-relax-match"):
        find_start(config, lambda _: None)
    start = find_start(config.replace(resume_relax_match=True), lambda _: None)
    assert start.checkpoint is not None
    start.open_folder(config).close()


def test_nothing_is_made_for_a_script_that_was_not_read(tmp_path: Path) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="new", scripted_sequence="file:x")
    with pytest.raises(ConfigError, match="name it yourself"):
        begin(config, lambda _: [], Stop())
    assert not (tmp_path / "new").exists()
