"""Where commands look for runs, and where they write."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import learn

from warpzone.cli.main import main
from warpzone.dashboard import serve

OUT = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run `mine`."""
    folder = tmp_path_factory.mktemp("elsewhere")
    run, _ = learn(folder, max_steps=64, run_name="mine")
    assert run.folder.path == folder / "mine"
    run.save()
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", [["--runs-dir"], []])
def test_the_dashboard_takes_its_folder_both_ways(
    runs: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []

    def record(settings: Any) -> int:
        served.append(settings)
        return 0

    monkeypatch.setattr(serve, "serve", record)
    assert main(["dashboard", *words, str(runs)]) == 0
    assert [settings.folder for settings in served] == [runs]


def test_the_dashboard_takes_one_folder(runs: Path, capsys: OUT) -> None:
    assert main(["dashboard", str(runs), "--runs-dir", str(runs)]) == 2
    assert capsys.readouterr().err == (
        "warpzone dashboard: the folder of runs is given twice; give it once.\n"
    )


@pytest.mark.parametrize("where", [["--runs-dir"], []])
def test_the_dashboard_of_a_run_by_its_name(
    runs: Path, here: Path, where: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[Any] = []

    def record(settings: Any) -> int:
        served.append(settings)
        return 0

    monkeypatch.setattr(serve, "serve", record)
    if not where:
        (here / "runs").symlink_to(runs)
    assert main(["dashboard", "mine", *where, *([str(runs)] if where else [])]) == 0
    assert [settings.folder.resolve() for settings in served] == [runs / "mine"]


def test_a_run_is_resumed_by_its_name(runs: Path, here: Path) -> None:
    from warpzone.config import TrainConfig
    from warpzone.run.resume import find_start, saved_config

    asked = TrainConfig(resume="mine", runs_dir=str(runs))
    saved = saved_config(asked)
    assert saved is not None
    assert saved.size == 36
    start = find_start(saved.replace(resume="mine", runs_dir=str(runs)), lambda _: None)
    assert start.folder == runs / "mine"


def test_checkpoints_of_a_run_by_its_name(runs: Path, here: Path, capsys: OUT) -> None:
    where = ["--runs-dir", str(runs)]
    for words in (["list", "mine"], ["list", "latest"], ["list"]):
        assert main(["checkpoints", *words, "--json", *where]) == 0
        row = json.loads(capsys.readouterr().out)
        assert Path(row["path"]).is_relative_to(runs / "mine")
    assert main(["checkpoints", "verify", *where]) == 0
    assert capsys.readouterr().out == "1 checkpoints are intact, 0 are not\n"
    assert main(["checkpoints", "inspect", "mine", *where]) == 0
    assert json.loads(capsys.readouterr().out)["save_state"]["global_step"] == 64
    assert main(["checkpoints", "prune", "mine", "--dry-run", *where]) == 0
    assert main(["checkpoints", "migrate", "mine", "--dry-run", *where]) == 0
    assert "already_has_step" in capsys.readouterr().out
    assert list(here.iterdir()) == []


def test_a_report_has_the_name_of_its_run(runs: Path, here: Path, capsys: OUT) -> None:
    where = ["--no-maps", "--runs-dir", str(runs)]
    assert main(["report", "latest", *where]) == 0
    assert capsys.readouterr().out.endswith(" in mine.html\n")
    shutil.copytree(runs / "mine", here / "other")
    assert main(["report", "mine", "other", *where]) == 0
    assert {path.name for path in here.iterdir()} == {"mine.html", "report.html", "other"}


def test_a_map_has_the_name_of_its_stage(runs: Path, here: Path) -> None:
    assert main(["map", "1-1"]) == 0
    assert main(["map", "1-1", "--run", "latest", "--runs-dir", str(runs)]) == 0
    assert {path.name for path in here.iterdir()} == {"1-1.png", "mine-1-1.png"}


def test_maps_of_several_stages_have_a_folder(here: Path) -> None:
    assert main(["map", "1-1,1-2"]) == 0
    assert {path.name for path in (here / "maps").iterdir()} == {"1-1.png", "1-2.png"}
