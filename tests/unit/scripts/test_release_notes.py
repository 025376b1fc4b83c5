"""A tag becomes a release only if it is the version, signed and described."""

import os
import runpy
import shutil
import subprocess
import sys
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
    assert script["check"]("v1.2.3", tree, signers=None) == "- new\n"
    assert script["section"](LOG, "1.2.2") == "- old\n"


@pytest.mark.parametrize("tag", ["v1.2.2", "1.2.3", "v1.2.3rc1"])
def test_other_tags_are_refused(script: dict[str, Any], tree: Path, tag: str) -> None:
    with pytest.raises(ValueError, match=r"the version is 1\.2\.3"):
        script["check"](tag, tree, signers=None)


def test_a_version_without_a_section_is_refused(script: dict[str, Any], tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- later\n")
    with pytest.raises(ValueError, match="no section"):
        script["check"]("v1.2.3", tree, signers=None)


def git(folder: Path, *words: str) -> None:
    """git as a stranger's machine has it: no settings of whoever runs the tests."""
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *words]
    variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(command, check=True, timeout=60, capture_output=True, env=variables)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key that the project names, one that it does not, and the file of names."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    folder = tmp_path_factory.mktemp("keys")
    for name in ("named", "unknown"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", name]
        subprocess.run(words, check=True, timeout=60, cwd=folder)
    key = (folder / "named.pub").read_text()
    (folder / "signers").write_text(f'# who may release\na@b namespaces="git" {key}')
    return folder


@pytest.fixture
def repository(tree: Path) -> Path:
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    return tree


def sign(repository: Path, key: Path) -> None:
    words = ("-c", "gpg.format=ssh", "-c", f"user.signingkey={key}.pub")
    git(repository, *words, "tag", "-s", "v1.2.3", "-m", "one")


def test_a_tag_of_a_named_key_is_released(
    script: dict[str, Any], repository: Path, keys: Path
) -> None:
    sign(repository, keys / "named")
    assert script["check"]("v1.2.3", repository, signers=keys / "signers") == "- new\n"


def test_a_tag_of_another_key_is_refused(
    script: dict[str, Any], repository: Path, keys: Path
) -> None:
    sign(repository, keys / "unknown")
    with pytest.raises(ValueError, match=r"^v1\.2\.3 is not signed by a key that signers names$"):
        script["check"]("v1.2.3", repository, signers=keys / "signers")


@pytest.mark.parametrize(
    "words",
    [
        ["-a", "-m", "one", "--no-sign"],
        [],
        ["-a", "-m", "one\n\n-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----"],
    ],
    ids=["annotated", "lightweight", "PGP"],
)
def test_a_tag_without_a_signature_is_refused(
    script: dict[str, Any], repository: Path, keys: Path, words: list[str]
) -> None:
    git(repository, "tag", *words, "v1.2.3")
    with pytest.raises(ValueError, match=r"not a tag with the signature of an SSH key"):
        script["check"]("v1.2.3", repository, signers=keys / "signers")


def test_a_signature_of_another_tag_is_refused(
    script: dict[str, Any], repository: Path, keys: Path
) -> None:
    """Whoever can push a tag cannot give it the signature of an earlier one."""
    sign(repository, keys / "named")
    shown = ["git", "-C", str(repository), "cat-file", "tag", "v1.2.3"]
    text = subprocess.run(shown, check=True, capture_output=True, text=True).stdout
    changed = text.replace("\n\none\n", "\n\ntwo\n")
    assert changed != text
    write = ["git", "-C", str(repository), "mktag", "--no-strict"]
    made = subprocess.run(write, check=True, capture_output=True, text=True, input=changed)
    git(repository, "update-ref", "refs/tags/v1.2.3", made.stdout.strip())
    with pytest.raises(ValueError, match="not signed by a key"):
        script["check"]("v1.2.3", repository, signers=keys / "signers")


@pytest.mark.parametrize("text", [None, "# nobody yet\n"])
def test_nothing_is_released_while_no_key_is_named(
    script: dict[str, Any], repository: Path, keys: Path, tmp_path: Path, text: str | None
) -> None:
    sign(repository, keys / "named")
    if text is not None:
        (tmp_path / "signers").write_text(text)
    with pytest.raises(ValueError, match="signers names no key"):
        script["check"]("v1.2.3", repository, signers=tmp_path / "signers")


def test_a_refusal_is_one_sentence(repository: Path, keys: Path) -> None:
    sign(repository, keys / "unknown")
    command = [sys.executable, str(ROOT / "scripts" / "release_notes.py"), "--tag", "v1.2.3"]
    command += ["--root", str(repository), "--signers", str(keys / "signers")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr == "release_notes: v1.2.3 is not signed by a key that signers names\n"
