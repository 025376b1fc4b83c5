"""A tag becomes a release only if it is the version, signed and described."""

import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
LOG = """# Changelog

## [Unreleased]

- later

## [1.2.3] - 2026-01-01

- new

## [1.2.2]

- old
"""


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "release_notes.py"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(LOG)
    return tmp_path


def test_section_of_the_version(script: dict[str, Any], tree: Path) -> None:
    assert script["check"]("v1.2.3", tree, signed=False) == "- new\n"
    assert script["section"](LOG, "1.2.2") == "- old\n"


@pytest.mark.parametrize("tag", ["v1.2.2", "1.2.3", "v1.2.3rc1"])
def test_other_tags_are_refused(script: dict[str, Any], tree: Path, tag: str) -> None:
    with pytest.raises(ValueError, match=r"the version is 1\.2\.3"):
        script["check"](tag, tree, signed=False)


def test_a_version_without_a_section_is_refused(script: dict[str, Any], tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- later\n")
    with pytest.raises(ValueError, match="no section"):
        script["check"]("v1.2.3", tree, signed=False)


def test_a_tag_without_a_signature_is_refused(script: dict[str, Any], tree: Path) -> None:
    git = ["git", "-C", str(tree), "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], check=True, timeout=60)
    subprocess.run([*git, "tag", "-a", "v1.2.3", "-m", "one", "--no-sign"], check=True, timeout=60)
    with pytest.raises(ValueError, match="not a signed tag"):
        script["check"]("v1.2.3", tree, signed=True)
    kind = "-----BEGIN SSH SIGNATURE-----\nabc\n-----END SSH SIGNATURE-----"
    subprocess.run(
        [*git, "tag", "-f", "-a", "v1.2.3", "-m", f"one\n\n{kind}", "--no-sign"],
        check=True,
        timeout=60,
        capture_output=True,
    )
    assert script["check"]("v1.2.3", tree, signed=True) == "- new\n"
