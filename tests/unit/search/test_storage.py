"""Storages: heartbeats on journals, refusals with reasons, and passwords that nobody sees."""

import os
import re
import socket
import sqlite3
import time
from pathlib import Path

import pytest
from tiny_spaces import tiny_space

optuna = pytest.importorskip("optuna")

from optuna.trial import TrialState  # noqa: E402

from warpzone.config import ConfigError  # noqa: E402
from warpzone.search import storage as storages  # noqa: E402
from warpzone.search.address import Address  # noqa: E402
from warpzone.search.storage import StorageError, open_storage  # noqa: E402
from warpzone.search.studies import KEPT, open_study  # noqa: E402

SECRET = "geheim"


def test_a_silent_trial_of_a_journal_is_failed_and_tried_again(tmp_path: Path) -> None:
    study = open_study(tiny_space(), Address(str(tmp_path / "j.log")), 10)
    live, dead, young = (study.ask() for _ in range(3))
    value = tiny_space().parameters[0].suggest(dead)
    dead.report(5.0, 32)
    for trial in (live, dead):
        study._storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]
    long_ago = time.time() - 41
    os.utime(tmp_path / "j.log.alive" / str(dead._trial_id), (long_ago, long_ago))
    optuna.storages.fail_stale_trials(study)
    states = [trial.state for trial in study.trials]
    assert states == [
        *(TrialState.RUNNING, TrialState.FAIL, TrialState.RUNNING),
        TrialState.WAITING,
    ]
    again = study.ask()
    assert again.number == 3
    assert tiny_space().parameters[0].suggest(again) == value
    assert study.trials[3].intermediate_values == {32: 5.0}
    assert young.number == 2
    # Another look finds nobody dead.
    optuna.storages.fail_stale_trials(study)
    assert len(study.trials) == 4


def test_a_trial_that_is_late_is_alive(tmp_path: Path) -> None:
    """Four heartbeats may fail to come, on a machine that is busy."""
    study = open_study(tiny_space(), Address(str(tmp_path / "j.log")), 10)
    late = study.ask()
    study._storage.record_heartbeat(late._trial_id)  # type: ignore[attr-defined]
    before = time.time() - 25
    os.utime(tmp_path / "j.log.alive" / str(late._trial_id), (before, before))
    optuna.storages.fail_stale_trials(study)
    assert [trial.state for trial in study.trials] == [TrialState.RUNNING]


def test_a_trial_is_given_up_after_three_more_tries(tmp_path: Path) -> None:
    study = open_study(tiny_space(), Address(str(tmp_path / "j.log")), 10)
    long_ago = time.time() - 41
    for count in range(4):
        trial = study.ask()
        assert trial.number == count
        study._storage.record_heartbeat(trial._trial_id)  # type: ignore[attr-defined]
        os.utime(tmp_path / "j.log.alive" / str(trial._trial_id), (long_ago, long_ago))
        optuna.storages.fail_stale_trials(study)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 4


@pytest.mark.parametrize("content", [b"hello\n", b'{"a": 1}\n', b"\x00\xff" * 40_000, b"[" * 9000])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"notes\.txt is no journal"):
        open_storage(Address(str(path)), 10)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize(
    "content",
    [
        '{"op_code":99,"worker_id":"x","study_name":"s"}\n',
        '{"op_code":0,"worker_id":"x"}\n',
        '{"op_code":0}\nnonsense\n{"op_code":0}\n',
    ],
)
def test_a_journal_of_another_version(tmp_path: Path, content: str) -> None:
    path = tmp_path / "j.log"
    path.write_text(content)
    with pytest.raises(StorageError, match="no journal that optuna") as refused:
        open_storage(Address(str(path)), 10)
    assert "\n" not in str(refused.value)
    # Nothing of ours is left beside it.
    assert os.listdir(tmp_path) == ["j.log"]
    assert path.read_text() == content


def test_a_journal_in_no_folder(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        open_storage(Address(str(tmp_path / "nowhere" / "j.log")), 10)
    assert os.listdir(tmp_path) == []


def test_a_database_of_another_version(tmp_path: Path) -> None:
    address = Address(f"sqlite:///{tmp_path / 'runs.db'}")
    open_study(tiny_space(), address, 10)
    with sqlite3.connect(tmp_path / "runs.db") as base:
        base.execute("UPDATE alembic_version SET version_num = 'v9.9.9'")
    with pytest.raises(StorageError, match="the storage is of another version") as refused:
        open_storage(address, 10)
    assert "\n" not in str(refused.value)


def test_a_database_that_cannot_be_reached() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = Address(f"postgresql://mario:{SECRET}@127.0.0.1:{port}/runs")
    with pytest.raises(StorageError, match="the database cannot be reached") as refused:
        open_storage(address, 10)
    assert re.fullmatch(
        r"the database cannot be reached \(\d+ s\): Connection refused", str(refused.value)
    )


@pytest.mark.limit(120)
def test_a_database_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storages, "CONNECT_SECONDS", 2)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = Address(f"postgresql://mario:{SECRET}@127.0.0.1:{mute.getsockname()[1]}/runs")
        with pytest.raises(StorageError, match="timeout") as refused:
            open_storage(address, 10)
    assert SECRET not in str(refused.value)


def test_a_name_belongs_to_one_space(tmp_path: Path) -> None:
    address = Address(str(tmp_path / "j.log"))
    open_study(tiny_space(), address, 10)
    before = (tmp_path / "j.log").read_bytes()
    open_study(tiny_space(sampler="cmaes"), address, 10)
    other = tiny_space(space={"lr": {"low": 1e-4, "high": 1e-2}}, fixed={"gamma": 0.5})
    with pytest.raises(ConfigError, match=r"a sweep tiny of another space \(gamma, lr differ\)"):
        open_study(other, address, 10)
    assert (tmp_path / "j.log").read_bytes() == before
    open_study(tiny_space(name="b", fixed={"gamma": 0.5}), address, 10)


def test_a_sweep_of_another_format(tmp_path: Path) -> None:
    address = Address(str(tmp_path / "j.log"))
    study = open_study(tiny_space(), address, 10)
    study.set_user_attr(KEPT, {**study.user_attrs[KEPT], "format": 2})
    with pytest.raises(ConfigError, match="has format 2, and this version writes 1"):
        open_study(tiny_space(), address, 10)


def test_a_study_of_somebody_else(tmp_path: Path) -> None:
    address = Address(str(tmp_path / "j.log"))
    optuna.create_study(study_name="tiny", storage=open_storage(address, 10)).ask()
    with pytest.raises(ConfigError, match="is no sweep of warpzone"):
        open_study(tiny_space(), address, 10)
    assert os.listdir(tmp_path) == ["j.log"]


def test_a_database_that_fails_later_is_told_without_its_address(tmp_path: Path) -> None:
    from sqlalchemy.exc import OperationalError

    address = Address(f"postgresql://mario:{SECRET}@db.secret.example/runs")
    said = "failed to resolve host 'db.secret.example': unknown"
    lost = optuna.exceptions.StorageInternalError("An exception is raised during the commit")

    def fail() -> None:
        try:
            raise lost from OperationalError("SELECT", {}, Exception(said))
        finally:
            # What Optuna does when it cannot note how a trial ended.
            raise UnboundLocalError("updated_state")

    with pytest.raises(StorageError) as told, storages.telling(address):
        fail()
    assert SECRET not in str(told.value)
    assert "secret.example" not in str(told.value)
    assert str(told.value).startswith("the database failed: ")
    # An error of anything else stays what it is.
    with pytest.raises(UnboundLocalError), storages.telling(address):
        raise UnboundLocalError("mine")
    with pytest.raises(UnboundLocalError), storages.telling(Address(str(tmp_path / "j.log"))):
        fail()


def test_heartbeats_go_on_while_a_database_is_away(tmp_path: Path) -> None:
    found = open_storage(Address(f"sqlite:///{tmp_path / 'runs.db'}"), 10)
    trial = optuna.create_study(storage=found).ask()
    assert isinstance(found, storages.LiveDatabase)
    with sqlite3.connect(tmp_path / "runs.db") as base:
        base.execute("ALTER TABLE trial_heartbeats RENAME TO away")
    found.record_heartbeat(trial._trial_id)
    with sqlite3.connect(tmp_path / "runs.db") as base:
        base.execute("ALTER TABLE away RENAME TO trial_heartbeats")
    found.record_heartbeat(trial._trial_id)
    with sqlite3.connect(tmp_path / "runs.db") as base:
        assert base.execute("SELECT count(*) FROM trial_heartbeats").fetchone() == (1,)
