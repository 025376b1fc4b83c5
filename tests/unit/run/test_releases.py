"""Files that earlier releases wrote."""

from pathlib import Path

import pytest
import releases

import warpzone
from warpzone import rom


def test_this_release_is_kept() -> None:
    assert warpzone.__version__ in releases.versions()


@pytest.mark.parametrize("version", releases.versions())
def test_agents_of_releases_decide_as_they_did(version: str) -> None:
    assert releases.actions(version) == releases.expected(version)
    assert len(set(releases.expected(version))) > 2, (
        "an agent that always does the same shows little"
    )


@pytest.mark.parametrize("version", releases.versions())
def test_checkpoints_of_releases_resume(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    assert releases.resume(version, tmp_path) == 128


def test_nothing_of_a_rom_is_kept() -> None:
    game = rom.load_stored("eu").data
    pieces = [
        game[at : at + 32] for at in range(16, len(game) - 32, 512) if any(game[at : at + 32])
    ]
    for path in releases.RELEASES.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [piece for piece in pieces if len(set(piece)) > 4 and piece in content], path
