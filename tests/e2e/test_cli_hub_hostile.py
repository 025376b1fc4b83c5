"""`warpzone hub pull` from repositories that are not what they say, and connections that break."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hub_server import kept

from warpzone.cli.main import main

OUT = pytest.CaptureFixture[str]
REPO = "somebody/mario"


def described(repo: Any, **changes: Any) -> None:
    """Changes the description of a repository."""
    about = json.loads(repo.files["config.json"])
    repo.files["config.json"] = json.dumps({**about, **changes}).encode()


def hostile(kind: str, repo: Any) -> None:
    """Turns a good repository into a bad one."""
    weights, about = repo.files["model.safetensors"], json.loads(repo.files["config.json"])
    if kind == "pickle":
        repo.files["model.pkl"] = b"cos\nsystem\n(S'true'\ntR."
    elif kind == "code":
        repo.files["modeling_mario.py"] = b"raise SystemExit"
    elif kind == "pickle as weights":
        repo.files["model.safetensors"] = b"\x80\x04cos\nsystem\n."
        described(repo, sha256=hashlib.sha256(repo.files["model.safetensors"]).hexdigest(),
                  bytes=len(repo.files["model.safetensors"]))  # fmt: skip
        repo.files["README.md"] += json.loads(repo.files["config.json"])["sha256"].encode()
    elif kind == "traversal":
        repo.files["../../../evil.json"] = b"{}"
    elif kind == "large":
        repo.sizes["model.safetensors"] = 5 << 30
    elif kind == "longer than stated":
        repo.sizes["model.safetensors"] = len(weights) - 100
    elif kind == "other weights":
        repo.files["model.safetensors"] = weights[:-1] + bytes([weights[-1] ^ 1])
    elif kind == "card of others":
        repo.files["README.md"] = b"# Agent `mario`\n"
    elif kind == "no card":
        del repo.files["README.md"]
    elif kind == "no object":
        repo.files["config.json"] = b"[1, 2]"
    elif kind == "own network":
        described(repo, config={**about["config"], "network": "os:system"})
    elif kind == "huge network":
        described(repo, config={**about["config"], "hidden_size": 1 << 20})
    elif kind == "terminal":
        described(repo, notes=["\x1b]0;owned\x07"])
    elif kind == "numbers":
        described(repo, measured=[{"delays": "0..30", "clears": {"argmax": {"1-1": "2"}}}])


HOSTILE = {
    "pickle": "has a file 'model.pkl' that no agent needs",
    "code": "has a file 'modeling_mario.py' that no agent needs",
    "pickle as weights": "claims a header of",
    "traversal": "has a file called '../../../evil.json', which is refused",
    "large": "has 5,368,709,120 bytes; at most 1,073,741,824 are taken",
    "longer than stated": "is larger than the",
    "other weights": "is not the file that config.json was made for",
    "card of others": "README.md does not name the SHA-256",
    "no card": "is not an agent of warpzone: it has no README.md",
    "no object": "cannot be used: its description is no object",
    "own network": "it names code, which is not run",
    "huge network": "another network than its configuration describes",
    "terminal": "its description has no usable notes",
    "numbers": "its description has no usable rom",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_repositories_are_refused(hub: Any, capsys: OUT, tmp_path: Path, kind: str) -> None:
    assert main(["hub", "push", "small", REPO]) == 0
    hostile(kind, hub.repos[REPO])
    before = {path for path in tmp_path.rglob("*") if path.name != "agents"}
    capsys.readouterr()
    assert main(["hub", "pull", REPO]) == 1
    said = capsys.readouterr().err
    assert HOSTILE[kind] in said
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert kept() == []
    # Nothing was written anywhere else, and nothing is left of what was fetched.
    after = {path for path in tmp_path.rglob("*") if path.name not in ("agents", "data")}
    assert after <= before


def test_a_folder_that_is_a_link_is_not_written_to(hub: Any, capsys: OUT, tmp_path: Path) -> None:
    assert main(["hub", "push", "small", REPO]) == 0
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "agents").symlink_to(tmp_path / "elsewhere")
    assert main(["hub", "pull", REPO]) == 1
    assert "it is a link, which is not followed" in capsys.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("place", ["/resolve/", "/cdn/", "/api/models/"])
def test_a_lost_connection_leaves_nothing(hub: Any, capsys: OUT, place: str) -> None:
    assert main(["hub", "push", "small", REPO]) == 0
    hub.breaks[place] = 20
    capsys.readouterr()
    assert main(["hub", "pull", REPO]) == 1
    said = capsys.readouterr().err
    assert f"the connection to {hub.url} failed" in said
    assert said.count("\n") == 1
    assert kept() == []
    hub.breaks.clear()
    assert main(["hub", "pull", REPO]) == 0
