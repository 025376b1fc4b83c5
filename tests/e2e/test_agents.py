"""Shipped agents at the command line, and their episodes played again."""

import json
from pathlib import Path
from typing import Any

import pytest
from small_agents import TINY, ship, small_run
from tiny_runs import make_agent, tiny

from warpzone import rom
from warpzone.cli.main import main
from warpzone.env.stages import stage_index
from warpzone.eval.cases import Case
from warpzone.eval.evaluate import evaluate_cases
from warpzone.eval.weights import find_agent
from warpzone.rom import native
from warpzone.run.reader import named_run
from warpzone.run.shipped import read_description, shipped_names

OUT = pytest.CaptureFixture[str]
#: Of all episodes, those that another processor may turn by rounding, at the most: 2 %.
TURNED = 0.02


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return ship(monkeypatch, tmp_path)


@pytest.mark.usefixtures("small")
def test_agents_lists_them_and_shows_cards(capsys: OUT) -> None:
    assert main(["agents"]) == 0
    said = capsys.readouterr().out
    assert "small" in said
    assert "2/4" in said
    assert main(["agents", "small"]) == 0
    assert capsys.readouterr().out.startswith("# Agent `small`")
    assert main(["agents", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["small"]["name"] == "small"
    assert main(["agents", "smal"]) == 2
    said = capsys.readouterr().err
    assert said == "warpzone agents: no agent 'smal' is shipped; did you mean small?\n"


@pytest.mark.usefixtures("small")
def test_baselines_are_evaluated_beside_an_agent(capsys: OUT) -> None:
    words = ["eval", "small", "--delays", "0..1", "--policy", "argmax", "--stuck-after", "5"]
    assert main([*words, "--baselines", "--json", "e.json"]) == 0
    totals = json.loads(Path("e.json").read_text())["totals"]
    assert list(totals) == ["argmax", "random", "scripted"]
    assert len({total["episodes"] for total in totals.values()}) == 1
    assert "scripted: " in capsys.readouterr().out
    assert main(["eval", "small", "--whole-game", "--baselines"]) == 2
    assert "--baselines are about single stages" in capsys.readouterr().err


def test_names_work_wherever_an_agent_is_taken(capsys: OUT, small: Path) -> None:
    words = ["eval", "small", "--delays", "0", "--policy", "argmax", "--stuck-after", "5"]
    assert main([*words, "--json", "e.json"]) == 0
    document = json.loads(Path("e.json").read_text())
    assert (document["weights"], document["rom"], document["global_step"]) == ("small", "eu", 64)
    assert document["sha256"] == read_description("small")["sha256"]
    assert main(["play", "small", "--steps", "3", "--json"]) == 0
    assert main(["video", "small", "--scale", "1", "--stuck-after", "2"]) == 0
    assert Path("small.mp4").stat().st_size > 1000
    capsys.readouterr()
    small_run(Path("runs/small"))
    assert main([*words, "--json", "e.json"]) == 0
    assert "is shipped is shipped:small" in capsys.readouterr().err
    assert json.loads(Path("e.json").read_text())["weights"] == "runs/small/best.safetensors"
    assert main([*words[:1], "shipped:small", *words[2:]]) == 0
    assert "small" in capsys.readouterr().out
    assert named_run("small", Path("runs")) == Path("runs/small")
    small.write_bytes(small.read_bytes()[:-1])
    assert main([*words[:1], "shipped:small", *words[2:]]) == 1
    assert "its header describes" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_training_begins_with_an_agent(capsys: OUT) -> None:
    assert main(["train", *TINY, "--init", "small", "--lr", "1e-9", "--run-name", "tuned"]) == 0
    config = json.loads(Path("runs/tuned/config.json").read_text())
    assert (config["init"], config["size"], config["hidden_size"]) == ("small", 36, 16)
    (session,) = json.loads(Path("runs/tuned/versions.json").read_text())["sessions"]
    begun = session["begun_with"]
    assert (begun["agent"], begun["global_step"]) == ("small", 64)
    assert begun["sha256"] == read_description("small")["sha256"]
    # With this rate the weights are still those of the agent, and not those of a new network.
    tuned = find_agent("tuned").agent.state_dict()
    for name, value in make_agent(tiny()).state_dict().items():
        assert float((tuned[name] - value.half().float()).abs().max()) < 1e-6
    capsys.readouterr()
    assert main(["train", "--resume", "runs/tuned", "--max-steps", "96"]) == 0
    sessions = json.loads(Path("runs/tuned/versions.json").read_text())["sessions"]
    assert [bool(one["begun_with"]) for one in sessions] == [True, False]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--actions", "complex"], "another network (--actions simple there, complex here)"),
        (["--size", "48"], "another network (--size 36 there, 48 here)"),
        (["--memory", "gru"], "another network (--memory none there, gru here)"),
        (["--resume", "auto"], "--init begins a run and --resume goes on with one"),
    ],
)
@pytest.mark.usefixtures("small")
def test_what_does_not_fit_to_an_agent_is_refused(
    capsys: OUT, words: list[str], sentence: str
) -> None:
    assert main(["train", *TINY, "--init", "small", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert not Path("runs").exists()


def test_unknown_and_damaged_agents_begin_nothing(capsys: OUT, small: Path) -> None:
    assert main(["train", *TINY, "--init", "smal"]) == 2
    assert "did you mean small?" in capsys.readouterr().err
    small.write_bytes(small.read_bytes()[:-7])
    assert main(["train", *TINY, "--init", "small"]) == 1
    assert "its header describes" in capsys.readouterr().err
    assert not Path("runs").exists()


def again(name: str, cases: list[Case], variant: str = "eu") -> list[bool]:
    """Plays cases of a shipped agent; which of them are cleared."""
    found = find_agent(f"shipped:{name}")
    image = rom.find(variant)
    outcomes = evaluate_cases(found.agent, found.config, image, native.load(image), cases)
    return [outcome.cleared for outcome in outcomes]


@pytest.mark.parametrize("name", shipped_names())
def test_an_agent_does_what_its_card_says(name: str) -> None:
    sample = read_description(name)["sample"]
    cases = [Case(stage_index(one["stage"]), "argmax", one["start_delay"]) for one in sample]
    assert again(name, cases) == [one["cleared"] for one in sample]


def recorded(one: dict[str, Any], policy: str) -> dict[Case, bool]:
    from warpzone.eval.cases import parse_delays

    return {
        Case(stage_index(stage), policy, delay): digit == "1"
        for stage, digits in one["clears"][policy].items()
        for delay, digit in zip(parse_delays(one["delays"]), digits, strict=True)
    }


@pytest.mark.long
@pytest.mark.parametrize("name", shipped_names())
def test_an_agent_does_all_that_its_card_says(name: str) -> None:
    """Every recorded episode; the rates agree closely, single episodes nearly all."""
    for one in read_description(name)["measured"]:
        for policy in one["clears"]:
            expected = recorded(one, policy)
            cleared = again(name, list(expected), one["rom"])
            pairs = list(zip(cleared, expected.values(), strict=True))
            assert sum(a != b for a, b in pairs) <= TURNED * len(pairs), (one["delays"], policy)
