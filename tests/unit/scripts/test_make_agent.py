"""What the script that makes agents takes from a run, and what it leaves out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_agents import META, evaluation, make, small_run

from warpzone.run.shipped import ACTING


def test_a_run_becomes_an_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", lr=3e-4, runs_dir="/somewhere", archive_share=0.5)
    config = json.loads((run / "config.json").read_text())
    # As of a version that knows more.
    (run / "config.json").write_text(json.dumps({**config, "new_rule": True, "new_number": 3}))
    sessions = [{"commit": "abc", "device": "a device", "machine": "secret"}]
    (run / "versions.json").write_text(json.dumps({"sessions": sessions}))
    about = make(monkeypatch, run, tmp_path / "agents")
    assert set(about["config"]) == set(ACTING)
    assert about["config"]["size"] == config["size"]
    training = about["training"]
    assert (training["commit"], training["hardware"], training["seed"]) == ("abc", "a device", 7)
    assert (training["steps"], training["seconds"]) == (META["global_step"], META["seconds"])
    words = training["command"].split()
    assert words[:4] == ["warpzone", "train", "--preset", "all"]
    for flag, value in (("--lr", "0.0003"), ("--archive-share", "0.5"), ("--new-number", "3")):
        assert words[words.index(flag) + 1] == value
    assert "--new-rule" in words
    assert not {"--runs-dir", "--device", "--num-threads", "--run-name"} & set(words)
    text = json.dumps(about)
    assert "somewhere" not in text
    assert "secret" not in text
    assert not (tmp_path / "agents" / "small.md").exists()


def test_evaluations_make_the_card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    first = make(monkeypatch, run, tmp_path / "agents")
    file = tmp_path / "a.json"
    file.write_text(json.dumps(evaluation({"1-1": "11", "1-2": "01"}, sha256=first["sha256"])))
    words = ("--evals", str(file), "--note", "It is small.", "--commit", "c0ffee")
    again = make(monkeypatch, run, tmp_path / "agents", *words)
    assert again["sha256"] == first["sha256"]
    assert [one["stage"] for one in again["sample"]] == ["1-1"]
    card = (tmp_path / "agents" / "small.md").read_text()
    assert "It is small." in card
    assert "3 of 4, 75.0 %" in card
    assert "c0ffee" in card


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [({"sha256": "0"}, "other weights"), ({"global_step": 65}, "of step 65")],
)
def test_evaluations_of_others_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changes: dict[str, object], sentence: str
) -> None:
    run = small_run(tmp_path / "run")
    file = tmp_path / "a.json"
    file.write_text(json.dumps(evaluation({"1-1": "1"}, **changes)))
    with pytest.raises(RuntimeError, match=sentence):
        make(monkeypatch, run, tmp_path / "agents", "--evals", str(file))


def test_pages_say_what_was_measured() -> None:
    script = Path(__file__).parents[3] / "scripts" / "make_results.py"
    said = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")
