"""What the script that makes agents takes from a run, and what it leaves out."""

import json
import subprocess
import sys
from pathlib import Path

import make_agent
import pytest
import torch
from safetensors.torch import load_file, save_file
from small_agents import META, evaluation, make, small_run

from warpzone.run import packing
from warpzone.run.names import BEST
from warpzone.run.shipped import ACTING


def test_a_run_becomes_an_agent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", lr=3e-4, runs_dir="/somewhere", archive_share=0.6)
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
    for flag, value in (("--lr", "0.0003"), ("--archive-share", "0.6"), ("--new-number", "3")):
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


def test_large_matrices_are_packed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", memory="gru", hidden_size=256)
    plain = make(monkeypatch, run, tmp_path / "plain")
    monkeypatch.setattr(packing, "LEAST", 1 << 12)
    about = make(monkeypatch, run, tmp_path / "agents")
    file = tmp_path / "agents" / "small.safetensors"
    assert (plain["precision"], about["precision"]) == ("half", "mixed")
    assert about["parameters"] == plain["parameters"]
    assert about["bytes"] == file.stat().st_size < plain["bytes"]
    names = set(load_file(file))
    assert {"memory.from_input.weight:int8", "memory.from_input.weight:scale"} <= names
    assert {"encoder.linear.weight", "heads.policy.weight"} <= names
    # A packed file beside its configuration is made into itself.
    (tmp_path / "again").mkdir()
    for source in (run / "config.json", file):
        target = tmp_path / "again" / source.name
        target.write_bytes(source.read_bytes())
    again = make(monkeypatch, target, tmp_path / "out")
    assert (again["sha256"], again["parameters"]) == (about["sha256"], about["parameters"])


def test_weights_that_half_precision_cannot_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = small_run(tmp_path / "run")
    tensors = load_file(run / "best.safetensors")
    tensors["heads.value.bias"][0] = 1e6
    save_file(tensors, run / "best.safetensors", metadata={"meta": json.dumps(META)})
    with pytest.raises(RuntimeError, match="bias has numbers that half precision"):
        make(monkeypatch, run, tmp_path / "agents")
    assert not (tmp_path / "agents" / "small.safetensors").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sha256": "0"}, "other weights than .*small.safetensors"),
        # Of a file without a hash nobody knows what was measured.
        ({}, "other weights"),
        ({"sha256": "", "global_step": 65}, "of step 65"),
    ],
)
def test_evaluations_of_others_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changes: dict[str, object], sentence: str
) -> None:
    run = small_run(tmp_path / "run")
    file = tmp_path / "a.json"
    made = make(monkeypatch, run, tmp_path / "agents")
    if changes.get("sha256") == "":
        changes = {**changes, "sha256": made["sha256"]}
    file.write_text(json.dumps(evaluation({"1-1": "1"}, **changes)))
    with pytest.raises(RuntimeError, match=sentence):
        make(monkeypatch, run, tmp_path / "agents", "--evals", str(file))


def test_agents_go_into_the_repository_and_not_into_what_is_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["make_agent.py", "runs/x", "--name", "x", "--dry-run"])
    assert make_agent.main() == 0
    folder = Path(__file__).parents[3] / "src" / "warpzone" / "agents"
    assert f" in {folder} of " in capsys.readouterr().out


def test_pages_say_what_was_measured() -> None:
    script = Path(__file__).parents[3] / "scripts" / "make_results.py"
    said = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert (said.returncode, said.stdout) == (0, "")


def test_the_mean_of_several_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = (small_run(tmp_path / name) / BEST for name in ("one", "two"))
    before = load_file(first)
    save_file({name: value + 2.0 for name, value in load_file(second).items()}, second)
    make(monkeypatch, first, tmp_path / "out", "--average", str(second))
    mean = load_file(tmp_path / "out" / "small.safetensors")
    for name, value in before.items():
        torch.testing.assert_close(mean[name].float(), value + 1.0, atol=2e-3, rtol=2e-3)
    make(monkeypatch, first, tmp_path / "alone")
    alone = load_file(tmp_path / "alone" / "small.safetensors")
    for name, value in before.items():
        torch.testing.assert_close(alone[name].float(), value, atol=2e-3, rtol=2e-3)


def test_a_sharper_policy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A power of 2 changes exponents alone, and no weight of anything else."""
    run = small_run(tmp_path / "run")
    make(monkeypatch, run, tmp_path / "plain")
    make(monkeypatch, run, tmp_path / "sharp", "--sharpen", "4")
    plain, sharp = (load_file(tmp_path / name / "small.safetensors") for name in ("plain", "sharp"))
    policy = {name for name in plain if name.startswith("heads.policy.")}
    assert policy
    for name, value in plain.items():
        assert torch.equal(sharp[name], 4 * value if name in policy else value), name


def test_weights_of_another_network_have_no_mean(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = small_run(tmp_path / "one")
    other = small_run(tmp_path / "two", hidden_size=32) / BEST
    with pytest.raises(RuntimeError, match="another network"):
        make(monkeypatch, first, tmp_path / "out", "--average", str(other))
