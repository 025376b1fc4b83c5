"""`warpzone hub` against a stand-in that speaks the Hub's protocol."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hub_server import TOKEN, Repo, kept, point_at
from small_agents import evaluation, small_run
from tiny_runs import make_agent, tiny

from warpzone.cli.main import main
from warpzone.eval import card
from warpzone.eval.weights import find_agent
from warpzone.run.files import sha256
from warpzone.run.shipped import read_card, read_description

OUT = pytest.CaptureFixture[str]
REPO = "somebody/mario"


def evaluated(run: Path = Path("runs/small")) -> None:
    """What `warpzone eval small --json runs/small/eval.json` writes."""
    document = evaluation({"1-1": "1" * 31, "1-2": "0" * 31}, weights="/home/me/secret/runs/small")
    document["sha256"] = sha256(run / "best.safetensors")
    (run / "eval.json").write_text(json.dumps(document))


def test_what_is_pushed_is_pulled_and_plays(hub: Any, capsys: OUT) -> None:
    evaluated()
    assert main(["hub", "push", "small", "mario", "--license", "mit"]) == 0
    assert capsys.readouterr().out == f"runs/small/best.safetensors: {hub.url}/{REPO}\n"
    files = hub.repos[REPO].files
    assert sorted(files) == ["README.md", "config.json", "evaluation.json", "model.safetensors"]
    assert hub.repos[REPO].messages == ["Agent mario, 64 steps"]
    assert files["model.safetensors"] == Path("runs/small/best.safetensors").read_bytes()
    assert main(["hub", "pull", REPO]) == 0
    said = capsys.readouterr().out
    assert said.startswith("mario: ")
    assert kept() == ["mario.json", "mario.md", "mario.safetensors"]
    mine, theirs = find_agent("small"), find_agent("mario")
    assert (theirs.title, theirs.global_step) == ("mario", 64)
    assert theirs.config.stages == "1-1..1-2"
    for name, value in mine.agent.state_dict().items():
        assert torch.equal(value, theirs.agent.state_dict()[name])
    assert main(["agents"]) == 0
    assert "31/62" in capsys.readouterr().out
    assert main(["agents", "mario"]) == 0
    text = capsys.readouterr().out
    assert text == read_card("mario")
    assert "31 of 62, 50.0 %" in text
    assert sha256(theirs.path) in text
    assert read_description("mario")["hub"] == {"repo": REPO, "commit": hub.repos[REPO].commit}


def test_the_card_is_one_that_the_hub_understands(hub: Any) -> None:
    from huggingface_hub import ModelCard

    evaluated()
    assert main(["hub", "push", "small", REPO, "--license", "mit"]) == 0
    page: Any = ModelCard(hub.repos[REPO].files["README.md"].decode())
    assert (page.data.library_name, page.data.license) == ("warpzone", "mit")
    assert page.data.pipeline_tag == "reinforcement-learning"
    (result,) = page.data.eval_results
    assert (result.metric_type, result.metric_value) == ("clear_rate", 0.5)
    assert result.dataset_config == "2 stages, delays 0..30, argmax"
    assert page.text.strip().startswith("# Agent `mario`")
    assert f"warpzone hub pull {REPO}" in page.text


def test_nothing_of_the_machine_goes_along(hub: Any, tmp_path: Path) -> None:
    run = small_run(Path("runs/secret"), rom=str(tmp_path / "mine.nes"), init="/home/me/other.x")
    evaluated(run)
    assert main(["hub", "push", "secret", REPO]) == 0
    for name, content in hub.repos[REPO].files.items():
        for text in (str(tmp_path), "/home/me", "mine.nes", TOKEN, os.uname().nodename):
            assert text.encode() not in content, f"{text} in {name}"
    assert json.loads(hub.repos[REPO].files["config.json"])["config"]["rom"] is None


def test_evaluations_of_training_are_enough(hub: Any) -> None:
    rows = [
        {"global_step": step, "stage": "1-1", "policy": policy, "start_delay": delay,
         "cleared": policy == "argmax" and delay < 2, "furthest_x": 900, "steps": 50,
         "time_left": 300, "episode_return": 1.0, "reason": "death", "x": 900, "y": 0,
         "area_type": 1, "area_index": 0}
        for step in (32, 64) for policy in ("argmax", "sampled") for delay in range(3)
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    Path("runs/small/evals.jsonl").write_text(text)
    assert main(["hub", "push", "small", REPO]) == 0
    about = json.loads(hub.repos[REPO].files["config.json"])
    (one,) = about["measured"]
    assert (one["delays"], one["clears"]["argmax"]) == ("0..2", {"1-1": "110"})
    assert len(json.loads(hub.repos[REPO].files["evaluation.json"])["episodes"]) == 6


def test_an_agent_without_results_says_so(hub: Any, capsys: OUT) -> None:
    evaluated()
    document = json.loads(Path("runs/small/eval.json").read_text())
    Path("runs/small/eval.json").write_text(json.dumps({**document, "sha256": "0" * 64}))
    assert main(["hub", "push", "small", REPO]) == 0
    said = capsys.readouterr()
    assert said.err == "warpzone hub: runs/small/eval.json is of other weights, and is left out\n"
    assert "The card has no results" in said.out
    assert "evaluation.json" not in hub.repos[REPO].files
    assert main(["hub", "pull", REPO]) == 0
    assert "Nothing yet." in read_card("mario")
    assert main(["hub", "push", "small", REPO, "--evals", "runs/small/eval.json"]) == 2
    assert "is an evaluation of other weights" in capsys.readouterr().err
    for start in ({"start_halfway": True}, {"start_power": "big"}):
        Path("x.json").write_text(json.dumps({**document, **start}))
        assert main(["hub", "push", "small", REPO, "--evals", "x.json"]) == 2
        assert "did not begin at the door as small Mario" in capsys.readouterr().err
    Path("x.json").write_text('{"episodes": 3}')
    assert main(["hub", "push", "small", REPO, "--evals", "x.json"]) == 2
    assert "x.json is not what `warpzone eval --json` writes" in capsys.readouterr().err


def test_pushing_again_replaces_results(hub: Any) -> None:
    evaluated()
    assert main(["hub", "push", "small", REPO]) == 0
    Path("runs/small/eval.json").unlink()
    assert main(["hub", "push", "small", REPO, "--message", "without results"]) == 0
    assert sorted(hub.repos[REPO].files) == ["README.md", "config.json", "model.safetensors"]
    assert hub.repos[REPO].messages[-1] == "without results"


def test_a_shipped_agent_keeps_its_card(hub: Any) -> None:
    assert main(["hub", "push", "shipped:all", "mario-all"]) == 0
    files = hub.repos["somebody/mario-all"].files
    mine = read_description("all")
    theirs = json.loads(files["config.json"])
    assert theirs["sha256"] == hashlib.sha256(files["model.safetensors"]).hexdigest()
    assert theirs["measured"] == mine["measured"]
    # The first line of what the card says was measured.
    counted = next(line for line in card.render(mine).splitlines() if " of 992" in line)
    assert counted in files["README.md"].decode()
    assert main(["hub", "pull", "somebody/mario-all", "--name", "theirs"]) == 0
    assert find_agent("theirs").config == find_agent("shipped:all").config
    assert read_card("theirs") == card.render({**mine, "name": "theirs"})


def test_a_checkpoint_is_pushed_without_its_configuration(hub: Any) -> None:
    from safetensors.torch import save_file

    agent = make_agent(tiny(memory="gru", stages="1-1..1-2"))
    notes = {"meta": json.dumps({"global_step": 9, "hook": "https://x/secret"}), "more": "secret"}
    save_file(agent.state_dict(), "runs/small/other.safetensors", metadata=notes)
    assert main(["hub", "push", "runs/small/other.safetensors", REPO]) == 0
    assert b"secret" not in hub.repos[REPO].files["model.safetensors"]
    assert main(["hub", "pull", REPO]) == 0
    assert find_agent("mario").global_step == 9


def test_the_token_goes_to_the_hub_alone(
    hub: Any, capsys: OUT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what is printed nor any file has it, and the place of large files is not told it
    where that is another server."""
    assert main(["hub", "push", "small", REPO, "--private"]) == 0
    assert hub.repos[REPO].private
    assert main(["hub", "pull", REPO]) == 0
    assert hub.authorized["/api/whoami-v2"] == f"Bearer {TOKEN}"
    assert f"GET /cdn/{REPO}/model.safetensors" in hub.asked
    assert not any("/cdn/" in path for path in hub.authorized)
    monkeypatch.setenv("HF_TOKEN", TOKEN + "x")
    assert main(["hub", "push", "small", REPO]) == 1
    said = capsys.readouterr()
    assert "the Hub refuses the token" in said.err
    assert "hf auth login" in said.err
    assert said.err.count("\n") == 1
    assert TOKEN not in said.out + said.err
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or TOKEN.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["push", "smal", REPO], 2, "did you mean small?"),
        (["push", "empty", REPO], 2, "has no weights yet"),
        (["push", "small", "a/b/c"], 2, "a repository is called OWNER/NAME, or NAME"),
        (["push", "small", "other/mario"], 1, "the token may not do that with other/mario"),
        (["push", "bare/x.safetensors", REPO], 2, "has no configuration; push a run"),
        (["pull", "mario"], 2, "a repository is called OWNER/NAME, not 'mario'"),
        (["pull", "a/../b"], 2, "a repository is called OWNER/NAME"),
        (["pull", "somebody/none"], 1, "the Hub has no repository somebody/none"),
        (["pull", REPO, "--name", "all"], 2, "an agent all comes with the package"),
        (["pull", REPO, "--name", "../x"], 2, "an agent cannot be called '../x'"),
        (["pull", REPO, "--name", "$(x)"], 2, "an agent cannot be called '$(x)'"),
        (["pull", REPO, "--name", "latest"], 2, "an agent cannot be called 'latest'"),
        (["pull", REPO, "--revision", "none"], 1, f"{REPO} has no such revision"),
    ],
)
def test_wrong_use_is_one_sentence(
    hub: Any, capsys: OUT, words: list[str], code: int, sentence: str
) -> None:
    hub.repos[REPO] = Repo()
    small_run(Path("runs/empty"))
    Path("bare").mkdir()
    Path("runs/empty/best.safetensors").rename("bare/x.safetensors")
    assert main(["hub", *words]) == code
    said = capsys.readouterr().err.splitlines()
    assert sentence in said[-1]
    # A file without a configuration is announced as such.
    assert len(said) == (2 if "bare" in words[1] else 1)
    assert kept() == []
    assert hub.repos[REPO].files == {}


def test_a_name_is_not_taken_twice(hub: Any, capsys: OUT) -> None:
    assert main(["hub", "push", "small", REPO]) == 0
    assert main(["hub", "pull", REPO]) == 0
    before = find_agent("mario").path.stat().st_mtime_ns
    assert main(["hub", "pull", REPO]) == 2
    assert "an agent mario was pulled before" in capsys.readouterr().err
    assert find_agent("mario").path.stat().st_mtime_ns == before
    assert main(["hub", "pull", REPO, "--force"]) == 0
    assert find_agent("pulled:mario").path.stat().st_mtime_ns != before
    small_run(Path("runs/mario"))
    assert find_agent("mario").path == Path("runs/mario/best.safetensors")
    assert main(["export", "mario", "--torch", "a.pt2"]) == 0
    assert "the agent of that name that is pulled is pulled:mario" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "status", "sentence"),
    [
        ("/lfs/", 403, "the token may not do that with"),
        ("/commit/main", 500, "the Hub answered 500; try again later"),
        ("/preupload/", 429, "the Hub asks to wait: too many requests"),
        ("/api/validate-yaml", 400, "the Hub and this program disagree: "),
    ],
)
def test_a_push_that_fails_is_one_sentence(
    hub: Any,
    capsys: OUT,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    status: int,
    sentence: str,
) -> None:
    # The library waits between attempts.
    waits = SimpleNamespace(sleep=lambda _: None, time=lambda: 0.0)
    monkeypatch.setattr("huggingface_hub.utils._http.time", waits)
    hub.refuses[place] = status
    assert main(["hub", "push", "small", REPO]) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert hub.repos[REPO].files == {}


def test_offline_and_unreachable_are_one_sentence(
    hub: Any, capsys: OUT, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for words in (["push", "small", REPO], ["pull", REPO]):
        assert main(["hub", *words]) == 1
        assert capsys.readouterr().err == (
            "warpzone hub: HF_HUB_OFFLINE is set; unset it to reach the Hub\n"
        )
    assert hub.asked == []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    point_at(monkeypatch, "http://127.0.0.1:9")
    for words in (["push", "small", REPO], ["pull", REPO]):
        assert main(["hub", *words]) == 1
        said = capsys.readouterr().err
        assert "the connection to http://127.0.0.1:9 failed (" in said
        assert said.count("\n") == 1


def test_pushing_without_a_token_says_how_to_get_one(
    hub: Any, capsys: OUT, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    assert main(["hub", "push", "small", REPO]) == 1
    assert (
        "pushing needs a token of the Hub; log in with `hf auth login`" in capsys.readouterr().err
    )
    assert hub.repos == {}


def test_a_missing_package_names_the_extra(capsys: OUT, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert main(["hub", "pull", REPO]) == 1
    assert "pip install 'warpzone[export]'" in capsys.readouterr().err


def test_the_variables_of_the_library_are_heeded(hub: Any) -> None:
    """A process of its own, as a user starts it."""
    variables = {**os.environ, "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-m", "warpzone.cli.main", "hub"]

    def start(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words],
            env={**variables, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    done = start("push", "small", REPO)
    assert (done.returncode, done.stderr) == (0, "")
    assert "model.safetensors" in hub.repos[REPO].files
    done = start("pull", REPO, HF_HUB_OFFLINE="1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "HF_HUB_OFFLINE is set" in done.stderr
