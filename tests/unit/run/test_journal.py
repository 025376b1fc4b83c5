"""What is said while a run goes on, and a terminal that closes meanwhile."""

import io
import sys
from pathlib import Path

import pytest

from warpzone.run import journal


class Closed(io.StringIO):
    """A terminal that is gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_closed_terminal_silences_once_and_the_log_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    silenced: list[bool] = []
    noted: list[str] = []
    monkeypatch.setattr(journal, "silence", lambda: silenced.append(True))
    monkeypatch.setattr(journal, "note", noted.append)
    journal.say("to all")
    assert capsys.readouterr().err == "to all\n"
    assert silenced == []
    monkeypatch.setattr(sys, "stderr", Closed())
    journal.say("to the log alone")
    assert silenced == [True]
    assert noted == ["to all", "to the log alone"]
