"""What is shown to people who wait."""

import sys
import time
from pathlib import Path

import pytest

from warpzone.rom import waiting

CLEAR = "\r\x1b[K"


def test_a_line_shows_how_long_it_is_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "EVERY", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "write", written.append)
    with waiting.loading("a thing"):
        until = time.monotonic() + 60
        while len(written) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    assert written[:3] == 3 * [f"{CLEAR}a thing · 0 s"]
    assert written[-1] == CLEAR


@pytest.mark.parametrize("terminal", [True, False])
def test_pytorch_and_what_takes_as_long_again(
    terminal: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    waiting.load_torch()
    assert capsys.readouterr().err == "", "it is there already"
    name = f"slow_part_{terminal}"
    (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    waiting.load_torch(name)
    assert name in sys.modules
    shown = f"{CLEAR}loading PyTorch · 0 s{CLEAR}" if terminal else ""
    assert capsys.readouterr().err == shown
