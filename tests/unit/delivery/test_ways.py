"""Conda and the dev container: neither can be started here, so what their files say is compared
with what the package and the pages say."""

import json
import re
import tomllib
from typing import Any

import yaml  # type: ignore[import-untyped]
from markdown_pages import ROOT, blocks


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def supported() -> set[str]:
    return {c.rpartition(" ")[2] for c in project()["classifiers"] if ":: 3." in c}


def test_conda_gives_what_building_takes() -> None:
    text = (ROOT / "environment.yml").read_text()
    described = yaml.safe_load(text)
    assert described["name"] == "warpzone"
    wanted = dict(entry.partition("=")[::2] for entry in described["dependencies"])
    assert wanted.pop("python") in supported()
    assert set(wanted) == {"pip", "make", "c-compiler", "cxx-compiler"}
    (block,) = [b for b in blocks("docs/installing.md") if "conda env create" in b.text]
    assert [line.removeprefix("# ") for line in text.splitlines()[:2]] == block.text.splitlines()


def test_the_dev_container_sets_the_tree_up() -> None:
    described = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    version = re.fullmatch(r"mcr\..*/python:(3\.\d+)-\w+", described["image"])
    assert version is not None
    assert version[1] in supported()
    command = described["postCreateCommand"]
    assert command.endswith(" && make setup")
    assert "g++" in command.split()
    # What the targets below `make test` would install as root.
    makefile = (ROOT / "Makefile").read_text()
    for names in re.findall(r"apt-get install -y -qq ([^>]+) >", makefile):
        missing = set(names.split()) - set(command.split())
        assert missing <= {"postgresql"}, "sweeps with a database are tried elsewhere"
    assert described["forwardPorts"] == [8765]
