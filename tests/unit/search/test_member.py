"""Members of a population, in this process: where their sessions end, and what they take over."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_spaces import write

pytest.importorskip("optuna")
pytest.importorskip("ray")
torch = pytest.importorskip("torch")

from warpzone.run.reader import read_rows  # noqa: E402
from warpzone.search import takeover  # noqa: E402
from warpzone.search.member import EVERY, FILE, FOLDER, REPORT, THREADS, Member  # noqa: E402

#: The clip of PPO without its condition; a population has none.
SPACE = {"clip": {"low": 0.1, "high": 0.3}, "algo": {"choices": ["ppo", "a2c"]}}
FIXED = {"max_steps": 160, "eval_interval": 64, "checkpoint_interval": 1, "keep_last": 9}
SETTINGS: dict[str, Any] = {"lr": 1e-3, "entropy": 0.01, "algo": "a2c", "clip": 0.2}


@pytest.fixture(autouse=True)
def quick_evaluations(monkeypatch: pytest.MonkeyPatch) -> Any:
    from warpzone.eval import evaluate

    few = partial(evaluate.evaluate, delays=(0,))
    monkeypatch.setattr("warpzone.train.evaluator.evaluate", few)
    monkeypatch.setattr(evaluate, "STUCK_AFTER", 20)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def member(folder: Path, number: int, report: int = 0, **settings: Any) -> Member:
    """As Ray makes it, without Ray."""
    path = folder / "tiny.toml"
    if not path.exists():
        write(path, space=SPACE, fixed=FIXED, pruner="none")
        (folder / "members").mkdir()
    made = Member.__new__(Member)
    place = {FILE: str(path), FOLDER: str(folder), EVERY: 64, THREADS: 1, REPORT: report}
    made.config = {**SETTINGS, **settings, **place}
    made._trial_info = SimpleNamespace(trial_id=f"tiny_{number:05d}")
    made._iteration = 0
    made.setup(made.config)
    return made


def config(folder: Path, run: str) -> dict[str, Any]:
    return dict(json.loads((folder / run / "config.json").read_text()))


def test_sessions_end_at_exchanges_and_weights_are_taken_over(tmp_path: Path) -> None:
    first, second = member(tmp_path, 0), member(tmp_path, 1, lr=2e-3)
    # Updates have 32 steps, so that both exchange at 64, 128, and end with the last whole one.
    for one in (first, second):
        told = one.step()
        assert (told["global_step"], told["done"]) == (64, False)
    assert config(tmp_path, "member-01")["seed"] == config(tmp_path, "member-00")["seed"] + 1

    handed = tmp_path / "handed"
    handed.mkdir()
    first.save_checkpoint(str(handed))
    # Its own checkpoint: it goes on in its run.
    first.load_checkpoint(str(handed))
    assert first.run == "member-00"
    assert not takeover.incoming(tmp_path, 0).exists()
    told = first.step()
    assert (told["global_step"], told["done"]) == (128, False)
    assert first.step()["done"]

    # Another one's: a new run begins there, with settings of its own.
    second.load_checkpoint(str(handed))
    assert second.run == "member-01-2"
    assert second.step()["global_step"] == 128
    begun = [row for row in read_rows(tmp_path / "members", "01.jsonl") if row["event"] == "begin"]
    assert [(row["run"], row["parent"], row["step"]) for row in begun] == [
        ("member-01", None, 0),
        ("member-01-2", "member-00", 64),
    ]
    saved = config(tmp_path, "member-01-2")
    assert saved["lr"] == 2e-3
    assert not takeover.incoming(tmp_path, 1).exists()


def test_a_member_that_was_killed_goes_on_in_its_run(tmp_path: Path) -> None:
    member(tmp_path, 0).step()
    again = member(tmp_path, 0)
    assert (again.run, again.global_step) == ("member-00", 64)
    assert again.step()["global_step"] == 128


def test_a_session_that_was_trained_is_not_trained_on(tmp_path: Path) -> None:
    """Killed after its last update, before its value was written down."""
    told = member(tmp_path, 0).step()
    file = tmp_path / "members" / "00.jsonl"
    file.write_text(file.read_text().splitlines(keepends=True)[0])
    assert member(tmp_path, 0).step() == told
    assert told["global_step"] == 64


def test_a_member_reports_what_the_others_have_yet_to(tmp_path: Path) -> None:
    """The population was stopped when it had a value and others had none."""
    told = member(tmp_path, 0).step()
    again = member(tmp_path, 0, report=1)
    assert again.step() == told
    assert len(list(read_rows(tmp_path / "members", "00.jsonl"))) == 2
    # In its next iteration it trains, and so does one that all have waited for.
    again._iteration = 1
    assert again.step()["global_step"] == 128
    assert member(tmp_path, 0, report=3).step()["global_step"] == 160
    assert member(tmp_path, 0, report=7).step()["done"]
    steps = [row["step"] for row in read_rows(tmp_path / "members", "00.jsonl")]
    assert steps == [0, 64, 128, 160]


def test_a_run_that_was_taken_over_begins_from_its_parent_whenever_it_is_killed(
    tmp_path: Path,
) -> None:
    first, second = member(tmp_path, 0), member(tmp_path, 1)
    first.step()
    second.step()
    handed = tmp_path / "handed"
    handed.mkdir()
    first.save_checkpoint(str(handed))
    new = {**SETTINGS, "lr": 2e-3}
    # Decided, and then all is killed; another time when the run has no checkpoint yet.
    assert takeover.take_over(tmp_path, 1, handed, new) == "member-01-2"
    half = tmp_path / "member-01-2"
    half.mkdir()
    (half / "config.json").write_text("{}")
    again = member(tmp_path, 1, report=2, lr=2e-3)
    assert (again.run, again.global_step) == ("member-01-2", 64)
    assert again.step()["global_step"] == 128
    versions = json.loads((half / "versions.json").read_text())
    assert versions["sessions"][0]["resumed_from"]
    stems = {path.stem for path in (half / "checkpoints").glob("*_0000002.safetensors")}
    assert stems == {path.stem for path in handed.glob("*.safetensors")}
