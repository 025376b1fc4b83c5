"""`warpzone sweep` as a user runs it: killed workers, a real database, and what is left."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import postgres
import pytest
from tiny_spaces import write

pytest.importorskip("torch")
pytest.importorskip("optuna")

from warpzone.cli.main import main
from warpzone.search.address import VARIABLE

OUT = pytest.CaptureFixture[str]
#: Trials of some seconds, with a checkpoint after every update.
LONGER = {"max_steps": 1280, "eval_interval": 640, "checkpoint_interval": 1}


def start(folder: Path, *words: str, **more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **more}
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "warpzone.cli.main",
            "sweep",
            str(folder / "tiny.toml"),
            "--runs-dir",
            str(folder),
            "--heartbeat",
            "1",
            *words,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def until(found: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Waits for something to be there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if result := found():
            return result
        time.sleep(0.1)
    pytest.fail("it did not come")


def children(process: subprocess.Popen[str]) -> list[int]:
    import psutil

    return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]


def trained(folder: Path, least: int) -> Callable[[], Any]:
    """Whether so many trials have a checkpoint."""
    return lambda: len(list((folder / "tiny").glob("trial-*/checkpoints/*_latest.json"))) >= least


def record(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "tiny" / "sweep.json").read_text()))


def require_hidden(url: str, said: str, folder: Path) -> None:
    """Nothing of a database's address was said, or is in a folder."""
    port = url.split(":")[-1].split("/")[0]
    for secret in ("127.0.0.1", port, postgres.USER, postgres.PASSWORD, postgres.QUOTED):
        assert secret not in said
    whole = (f"127.0.0.1:{port}", f"{postgres.USER}:", postgres.PASSWORD, postgres.QUOTED)
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not any(secret.encode() in content for secret in whole), path


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    with postgres.server() as url:
        yield url


def test_workers_on_postgresql_are_killed_and_replaced(tmp_path: Path, database: str) -> None:
    """A worker is killed in the middle of its trial: the trial is tried again and resumed. Nothing
    that others can see has the password."""
    write(tmp_path / "tiny.toml", fixed=LONGER, pruner="none")
    process = start(tmp_path, "--trials", "3", "--workers", "2", "--storage", database)
    try:
        until(trained(tmp_path, 2))
        words = []
        for pid in (process.pid, *children(process)):
            words.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        os.kill(children(process)[0], signal.SIGKILL)
        said, _ = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "a worker died (SIGKILL) and is replaced" in said
    trials = record(tmp_path)["trials"]
    assert sorted(trial["state"] for trial in trials) == ["complete"] * 3 + ["fail"]
    failed = next(trial for trial in trials if trial["state"] == "fail")
    again = [trial for trial in trials if trial["run"] == failed["run"]]
    assert [trial["state"] for trial in again] == ["fail", "complete"]
    assert again[1]["steps"] < 1280
    assert again[1]["params"] == failed["params"]
    assert "mario:***@127.0.0.1" in words[0]
    assert not any(secret in "".join(words) for secret in (postgres.PASSWORD, postgres.QUOTED))
    require_hidden(database, said, tmp_path / "tiny")


@pytest.mark.limit(300)
def test_a_database_that_goes_away_is_a_sentence_without_its_address(tmp_path: Path) -> None:
    write(tmp_path / "tiny.toml", fixed={**LONGER, "max_steps": 64_000}, pruner="none")
    with postgres.server() as url:
        process = start(tmp_path, "--trials", "2", **{VARIABLE: url})
        try:
            until(lambda: process.poll() is not None or trained(tmp_path, 1)(), 120)
        except BaseException:
            process.kill()
            raise
    try:
        said, _ = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 1, said
    assert "a worker ends: the database failed: " in said
    assert said.splitlines()[-1].startswith("warpzone sweep: the database failed: ")
    assert "Traceback" not in said
    require_hidden(url, said, tmp_path / "tiny")


def test_a_sweep_on_postgresql_has_one_space(
    tmp_path: Path, database: str, capsys: OUT, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, database)
    runs = tmp_path / "runs"
    words = ["sweep", "", "--trials", "1", "--max-steps", "1", "--runs-dir", str(runs)]
    from warpzone.search.address import Address
    from warpzone.search.space import read_space
    from warpzone.search.studies import open_study

    open_study(read_space(write(tmp_path / "one.toml", name="same")), Address(database), 10)
    words[1] = str(write(tmp_path / "two.toml", name="same", fixed={"gamma": 0.5}))
    assert main(words) == 2
    assert "a sweep same of another space (gamma differ)" in capsys.readouterr().err
    monkeypatch.setenv(VARIABLE, database.replace(postgres.QUOTED, "wrong"))
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "the database cannot be reached" in said
    assert "password authentication failed" in said
    assert said.count("\n") == 1
    require_hidden(database, said, tmp_path)
    assert not runs.exists()


def test_two_sweeps_at_once_work_on_one_study(tmp_path: Path) -> None:
    """The same command twice, at the same moment: together they do each trial once."""
    write(tmp_path / "tiny.toml", fixed=LONGER, pruner="none")
    crews = [start(tmp_path, "--trials", "4") for _ in range(2)]
    try:
        said = [crew.communicate(timeout=600)[0] for crew in crews]
    finally:
        for crew in crews:
            crew.kill()
    assert [crew.returncode for crew in crews] == [0, 0], said
    began = [set(re.findall(r"trial (\d+) begins", text)) for text in said]
    assert all(began), said
    assert not began[0] & began[1]
    assert began[0] | began[1] == {"0", "1", "2", "3"}
    assert all("4 of 4 trials are over" in text for text in said)
    trials = record(tmp_path)["trials"]
    assert [(trial["number"], trial["state"]) for trial in trials] == [
        (number, "complete") for number in range(4)
    ]
    assert [trial["run"] for trial in trials] == [f"trial-{number:04d}" for number in range(4)]
    assert [trial["steps"] for trial in trials] == [1280] * 4


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that was stopped with SIGTERM and went on, in its own folder."""
    folder = tmp_path_factory.mktemp("stopped")
    write(folder / "tiny.toml", fixed=LONGER, pruner="none")
    process = start(folder, "--trials", "2")
    try:
        until(trained(folder, 1))
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 128 + signal.SIGTERM, said
    states = [trial["state"] for trial in record(folder)["trials"]]
    assert states == ["fail", "waiting"], said
    process = start(folder, "--trials", "2")
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert "2 of 2 trials are over" in said
    assert "[sweep] warpzone train --preset quick" in said
    return folder


def test_a_stopped_sweep_goes_on(stopped: Path) -> None:
    trials = record(stopped)["trials"]
    assert [trial["state"] for trial in trials] == ["fail", "complete", "complete"]
    assert trials[1]["run"] == trials[0]["run"] == "trial-0000"
    assert trials[0]["steps"] + trials[1]["steps"] == 1280


def test_the_report_of_a_sweep(stopped: Path, capsys: OUT, tmp_path: Path) -> None:
    page = tmp_path / "sweep.html"
    assert main(["report", "tiny", "--runs-dir", str(stopped), "--out", str(page)]) == 0
    text = page.read_text()
    assert record(stopped)["command"] in text
    assert "Parallel coordinates" in text
    run = str(stopped / "tiny" / "trial-0000")
    assert main(["report", str(stopped / "tiny"), run, "--out", str(page)]) == 2
    assert "is reported alone" in capsys.readouterr().err


def dashboard(storage: str) -> list[str]:
    """The studies that optuna-dashboard finds in a storage."""
    pytest.importorskip("optuna_dashboard")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    program = "import sys; from optuna_dashboard._cli import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", program, storage, "--host", "127.0.0.1", "--port", port],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        try:
            found = until(lambda: _studies(f"http://127.0.0.1:{port}/api/studies"), 120)
        finally:
            server.kill()
    return [study["study_name"] for study in found]


@pytest.mark.limit(300)
def test_optuna_dashboard_opens_the_storage(stopped: Path) -> None:
    assert dashboard(str(stopped / "tiny" / "journal.log")) == ["tiny"]


@pytest.mark.limit(300)
def test_optuna_dashboard_opens_a_database(tmp_path: Path, database: str) -> None:
    from warpzone.search.address import Address
    from warpzone.search.space import read_space
    from warpzone.search.studies import open_study

    open_study(read_space(write(tmp_path / "seen.toml", name="seen")), Address(database), 10)
    assert "seen" in dashboard(database)


def _studies(url: str) -> Any:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["study_summaries"]
    except (urllib.error.URLError, ConnectionError):
        return None


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--trials", "0"], 2, "0 is not a whole number"),
        (["--trials", "1", "--max-time", "-1"], 2, "--max-time must not be negative"),
        (["--trials", "1", "--storage", "mysql://x"], 2, "mysql is no kind of storage"),
        (["--trials", "1", "--storage", "/nowhere/x.log"], 1, "does not exist"),
        (["--trials", "1", "--storage", "postgresql://a:b@127.0.0.1:1/x"], 1, "cannot be reached"),
    ],
)
def test_wrong_usage_is_one_sentence(
    words: list[str], code: int, text: str, tmp_path: Path, capsys: OUT
) -> None:
    space = str(write(tmp_path / "tiny.toml"))
    runs = tmp_path / "runs"
    try:
        found = main(["sweep", space, *words, "--runs-dir", str(runs)])
    except SystemExit as stop:
        found = int(str(stop.code))
    assert found == code
    said = capsys.readouterr().err
    assert text in said.splitlines()[-1]
    assert "127.0.0.1" not in said
    assert not runs.exists()


@pytest.mark.parametrize(
    ("kind", "code", "sentence"),
    [
        ("journal", 1, "is no journal that optuna"),
        ("database", 1, "the storage is of another version: "),
        ("sweep", 2, "has format 2, and this version writes 1; choose another name"),
    ],
)
def test_a_storage_of_another_version_is_one_sentence(
    kind: str, code: int, sentence: str, tmp_path: Path, capsys: OUT
) -> None:
    from warpzone.search.address import Address
    from warpzone.search.space import read_space
    from warpzone.search.studies import KEPT, open_study

    space = write(tmp_path / "tiny.toml")
    file = tmp_path / "storage"
    storage = f"sqlite:///{file}" if kind == "database" else str(file)
    if kind == "journal":
        file.write_text('{"op_code":99,"worker_id":"x","study_name":"s"}\n')
    else:
        study = open_study(read_space(space), Address(storage), 10)
        study.set_user_attr(KEPT, {**study.user_attrs[KEPT], "format": 2})
    if kind == "database":
        with sqlite3.connect(file) as base:
            base.execute("UPDATE alembic_version SET version_num = 'v9.9.9'")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    words = ["--trials", "1", "--storage", storage, "--runs-dir", str(tmp_path / "runs")]
    assert main(["sweep", str(space), *words]) == code
    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith("warpzone sweep: ")
    assert sentence in said
    assert said.count("\n") == 1
    # Nothing was written, neither there nor beside it.
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_folder_of_a_population_is_refused(tmp_path: Path, capsys: OUT) -> None:
    space = write(tmp_path / "tiny.toml")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "population.json").write_text("{}")
    assert main(["sweep", str(space), "--trials", "1", "--runs-dir", str(tmp_path)]) == 2
    assert "is a population; give the sweep another name" in capsys.readouterr().err


def test_a_space_that_cannot_be_leaves_nothing(tmp_path: Path, capsys: OUT) -> None:
    space = write(tmp_path / "tiny.toml", space={"lr": {"low": -1.0, "high": 1.0}})
    runs = tmp_path / "runs"
    assert main(["sweep", str(space), "--trials", "1", "--runs-dir", str(runs)]) == 2
    said = capsys.readouterr().err
    assert "space.lr: low leaves the field's range: --lr must be above 0, and is -1.0" in said
    assert main(["sweep", str(tmp_path / "no.toml"), "--trials", "1"]) == 1
    assert not runs.exists()
