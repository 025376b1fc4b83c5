"""Shipped agents: what a name means, and what is refused."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_agents import META, ship, small_run
from tiny_runs import make_agent, tiny

from warpzone.config import ConfigError
from warpzone.eval.weights import find_agent
from warpzone.run import shipped
from warpzone.run.shipped import KIND, named_agent, read_card, read_description, shipped_names


@pytest.fixture
def weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The only agent that is shipped; the folder of runs and the current one are empty."""
    (tmp_path / "here" / "runs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    return ship(monkeypatch, tmp_path)


def test_it_is_the_trained_agent_in_half_precision(weights: Path) -> None:
    found = find_agent("small")
    assert found.path == weights
    assert (found.title, found.global_step, found.guessed) == ("small", META["global_step"], False)
    assert {value.dtype for value in load_file(weights).values()} == {torch.float16}
    trained = make_agent(tiny()).state_dict()
    for name, value in found.agent.state_dict().items():
        assert value.dtype == torch.float32
        assert torch.equal(value, trained[name].half().float())
    assert found.config.size == tiny().size
    assert read_card("small").startswith("# Agent `small`")


def test_paths_come_first_then_runs_then_shipped_agents(weights: Path) -> None:
    runs = Path("runs")
    assert named_agent("small", runs) == weights
    own = small_run(runs / "small")
    assert named_agent("small", runs) == own
    assert named_agent("shipped:small", runs) == weights
    here = small_run(Path("small"))
    assert named_agent("small", runs) == here
    assert find_agent("small").path == here / "best.safetensors"
    assert named_agent("runs/small", runs) == own


def test_checkpoints_and_files_keep_their_names(weights: Path) -> None:
    for name in ("one.safetensors", "two.safetensors"):
        Path(name).write_bytes(weights.read_bytes())
    assert named_agent("two", Path("runs")) == Path("two")
    assert find_agent("one.safetensors").guessed
    Path("one.json").write_text(weights.with_suffix(".json").read_text())
    found = find_agent("one.safetensors")
    assert not found.guessed
    assert found.config == find_agent("small").config


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("smal", "there is no file, run in runs or shipped agent 'smal'; did you mean small?"),
        ("mime", "there is no file, run in runs or shipped agent 'mime'; did you mean mine?"),
        ("x", "there is no file, run in runs or shipped agent 'x'; there is small, mine"),
        ("shipped:mine", "no agent 'mine' is shipped; there is small"),
        ("shipped:../small", "no agent '../small' is shipped; did you mean small?"),
    ],
)
@pytest.mark.usefixtures("weights")
def test_unknown_names_get_suggestions(word: str, sentence: str) -> None:
    small_run(Path("runs/mine"))
    with pytest.raises(ConfigError) as refused:
        find_agent(word)
    assert str(refused.value) == sentence


@pytest.mark.usefixtures("weights")
def test_a_folder_of_that_name_is_no_agent() -> None:
    Path("small").mkdir()
    with pytest.raises(ConfigError) as refused:
        find_agent("small")
    said = "small is a folder here, and no run; the agent that is shipped is shipped:small"
    assert str(refused.value) == said


def test_damaged_files_are_refused(weights: Path) -> None:
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1])
    with pytest.raises(OSError, match="bytes, and its header describes"):
        find_agent("small")
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(OSError, match="not the file that its description was made for"):
        find_agent("small")
    weights.write_bytes(b"")
    with pytest.raises(OSError, match="is truncated"):
        find_agent("small")


def test_descriptions_that_do_not_fit_are_refused(weights: Path) -> None:
    file = weights.with_suffix(".json")
    about = json.loads(file.read_text())

    def described(**changes: object) -> None:
        file.write_text(json.dumps({**about, **changes}))

    described(config={**about["config"], "actions": "complex"})
    with pytest.raises(ConfigError, match="another network than its configuration describes"):
        find_agent("small")
    described(config={**about["config"], "size": 84})
    with pytest.raises(ConfigError, match="another network than its configuration describes"):
        find_agent("small")
    described(config={**about["config"], "sizes": 84})
    with pytest.raises(ConfigError, match="unknown configuration field 'sizes'"):
        find_agent("small")
    described(**{KIND: 2})
    with pytest.raises(ConfigError, match="written by another version"):
        find_agent("small")
    for text, sentence in (("{", "cannot be read"), ("{}", "does not describe an agent")):
        file.write_text(text)
        with pytest.raises(OSError, match=sentence):
            find_agent("small")
        with pytest.raises(OSError, match=sentence):
            read_description("small")
    file.unlink()
    with pytest.raises(FileNotFoundError):
        find_agent("small")


def test_those_of_the_package_are_whole() -> None:
    assert "all" in shipped_names()
    for name in shipped_names():
        about = read_description(name)
        assert about["bytes"] == (shipped.AGENTS / f"{name}.safetensors").stat().st_size
        assert set(about["config"]) == set(shipped.ACTING)
        # No place of the machine that it was trained on.
        assert not re.search(r'[\s"=]/', json.dumps(about))


def test_pulled_agents_come_after_shipped_ones(
    weights: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WARPZONE_DATA", str(tmp_path / "data"))
    assert shipped.pulled_names() == []
    folder = shipped.pulled_folder()
    folder.mkdir(parents=True)
    for name in ("small", "theirs"):
        for suffix in (".safetensors", ".json", ".md"):
            target = folder / f"{name}{suffix}"
            target.write_bytes(weights.with_suffix(suffix).read_bytes())
    assert shipped.agent_names() == ["small", "theirs"]
    assert find_agent("small").path == weights
    assert find_agent("pulled:small").path == folder / "small.safetensors"
    found = find_agent("theirs")
    assert (found.path.parent, found.title) == (folder, "theirs")
    assert read_card("theirs").startswith("# Agent `small`")
    with pytest.raises(ConfigError, match="no agent 'theirs' is shipped"):
        find_agent("shipped:theirs")
    with pytest.raises(ConfigError, match="no agent 'their' was pulled; did you mean theirs"):
        find_agent("pulled:their")
    with pytest.raises(ConfigError, match="did you mean theirs"):
        find_agent("theirz")
    Path("theirs").mkdir()
    with pytest.raises(ConfigError, match="the agent that is pulled is pulled:theirs"):
        find_agent("theirs")
