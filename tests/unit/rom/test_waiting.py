"""What is shown to people who wait."""

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

import warpzone
from warpzone.rom import waiting

CLEAR = "\r\x1b[K"
#: The first use of an agent in a program.
PROGRAM = 'import warpzone; warpzone.load_agent("all")'


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a fixture: what captures the output is another object in the test itself."""
    monkeypatch.delenv(waiting.VARIABLE, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)


def test_a_line_shows_how_long_it_is_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch)
    monkeypatch.setattr(waiting, "EVERY", 0.01)
    written: list[str] = []
    monkeypatch.setattr(sys.stderr, "write", written.append)
    with waiting.loading("a thing"):
        until = time.monotonic() + 60
        while len(written) < 3 and time.monotonic() < until:
            time.sleep(0.01)
    assert written[:3] == 3 * [f"{CLEAR}a thing · 0 s"]
    assert written[-1] == CLEAR


@pytest.mark.parametrize(
    ("tty", "asked", "style"),
    [
        (True, "", "terminal"),
        (True, "1", "terminal"),
        (True, "0", ""),
        (False, "", ""),
        (False, "1", "lines"),
        (False, "0", ""),
    ],
)
def test_where_something_is_shown(
    tty: bool, asked: str, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(waiting.VARIABLE, asked)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: tty)
    assert waiting.style() == style
    with waiting.hushed(False):
        assert waiting.style() == style
        with waiting.hushed(), waiting.hushed(False):
            assert waiting.style() == ""
    assert waiting.style() == style


def test_without_a_terminal_lines_are_shown_if_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for asked, shown in (("", ""), ("1", "warpzone: a thing\n")):
        monkeypatch.setenv(waiting.VARIABLE, asked)
        with waiting.loading("a thing"):
            assert capsys.readouterr().err == shown
        end = capsys.readouterr().err
        assert end.startswith(shown.rstrip("\n"))
        assert end.endswith(" s\n") == bool(asked)


@pytest.mark.parametrize("gone", [ValueError, OSError])
def test_a_terminal_that_has_gone_ends_nothing(
    gone: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_terminal(monkeypatch)

    def write(_text: str) -> int:
        raise gone("closed")

    monkeypatch.setattr(sys.stderr, "write", write)
    with waiting.loading("a thing"):
        pass
    monkeypatch.setattr(sys, "stderr", None)
    with waiting.loading("a thing"):
        assert waiting.style() == ""


def test_pytorch_and_what_takes_as_long_again(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("torch")
    on_terminal(monkeypatch)
    waiting.load_torch()
    assert capsys.readouterr().err == "", "it is there already"
    (tmp_path / "slow_part.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    waiting.load_torch("slow_part")
    assert "slow_part" in sys.modules
    assert capsys.readouterr().err == f"{CLEAR}loading PyTorch · 0 s{CLEAR}"


@pytest.mark.parametrize("quiet", [False, True])
def test_training_from_a_program_loads_where_it_is_seen(
    quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    on_terminal(monkeypatch)
    seen: list[tuple[str, tuple[str, ...]]] = []
    monkeypatch.setattr(waiting, "load_torch", lambda *also: seen.append((waiting.style(), also)))
    given: list[dict[str, object]] = []
    monkeypatch.setattr("warpzone.train.api.train", lambda **fields: given.append(fields))
    warpzone.train(stages="1-1", quiet=quiet)
    assert given == [{"stages": "1-1", "quiet": quiet}]
    assert seen == [("" if quiet else "terminal", ("torch._dynamo",))]


@pytest.mark.parametrize("quiet", [False, True])
def test_an_evaluation_shows_that_it_plays(quiet: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    agent = warpzone.load_agent("all")
    seen: list[str] = []

    def play(*_: object, **__: object) -> list[object]:
        seen.extend(shown)
        return []

    shown: list[str] = []
    monkeypatch.setattr(sys.stderr, "write", shown.append)
    monkeypatch.setattr("warpzone.rom.find", lambda _: b"")
    monkeypatch.setattr("warpzone.rom.native.load", lambda _: None)
    monkeypatch.setattr("warpzone.eval.loaded.evaluate", play)
    on_terminal(monkeypatch)
    assert warpzone.evaluate(agent, quiet=quiet).outcomes == ()
    assert seen == ([] if quiet else [f"{CLEAR}playing · 0 s"])
    assert shown[-1:] == ([] if quiet else [CLEAR])


@pytest.mark.parametrize("where", ["terminal", "pipe"])
def test_the_first_use_of_an_agent_in_a_program(where: str) -> None:
    pytest.importorskip("torch")
    ours, theirs = pty.openpty() if where == "terminal" else os.pipe()
    variables = {key: value for key, value in os.environ.items() if key != waiting.VARIABLE}
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=theirs, env=variables) as process:
        os.close(theirs)
        said = b""
        while part := _read(ours):
            said += part
        os.close(ours)
        assert process.wait(300) == 0, said.decode()
    if where == "pipe":
        assert said == b""
    else:
        assert said.decode().startswith(f"{CLEAR}loading PyTorch · 0 s")
        assert said.decode().endswith(CLEAR)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:
        # A terminal whose other side is closed.
        return b""
