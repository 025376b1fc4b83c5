"""Commands through a run's folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from dashboard_server import make_run

from warpzone.run import control
from warpzone.run.control import Command, CommandError
from warpzone.run.names import CONTROL, STATE


def test_a_command_arrives_once_and_in_order(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    sent = [Command.new("somebody", what) for what in ("pause", "save", "resume")]
    for command in reversed(sent):
        control.send(run, command)
    assert control.take(run) == (sent, [])
    assert control.take(run) == ([], [])
    assert list((run / CONTROL).iterdir()) == []


@pytest.mark.parametrize(
    ("what", "value", "reason"),
    [
        ("pause", 1.0, "takes no value"),
        ("explode", None, "unknown command"),
        ("entropy", -0.1, "0..0.2"),
        ("entropy", 0.3, "0..0.2"),
        ("lr", 0.0, "1e-07..0.01"),
        ("lr", float("nan"), "1e-07..0.01"),
        ("lr", True, "1e-07..0.01"),
    ],
)
def test_bounds_are_stated(what: str, value: Any, reason: str) -> None:
    with pytest.raises(CommandError, match=reason.replace(".", r"\.")):
        Command.new("somebody", what, value)


@pytest.mark.parametrize("who", ["", "x" * 81, "new\nline", "<b>"])
def test_who_is_plain_text(who: str) -> None:
    with pytest.raises(CommandError, match="the sender must be 1 to 80 letters"):
        Command.new(who, "pause")


def test_what_is_no_command_is_refused_and_removed(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    inbox = run / CONTROL
    inbox.mkdir()
    good = Command.new("somebody", "pause")
    control.send(run, good)
    texts = {
        "1" * 32: "{",
        "2" * 32: "[" * 5000,
        "3" * 32: json.dumps({"id": "3" * 32, "who": "x", "when": 1, "what": "lr", "value": 5}),
        "4" * 32: json.dumps({"id": "5" * 32, "who": "x", "when": 1, "what": "pause"}),
        "6" * 32: json.dumps({"id": "6" * 32, "what": "pause"}),
    }
    for name, text in texts.items():
        (inbox / f"{name}.json").write_text(text)
    (inbox / "notes.txt").write_text("not for the run")
    commands, refused = control.take(run)
    assert commands == [good]
    assert len(refused) == len(texts)
    assert [path.name for path in inbox.iterdir()] == ["notes.txt"]


def test_an_inbox_does_not_overflow(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    for _ in range(control.MAX_WAITING):
        control.send(run, Command.new("somebody", "save"))
    with pytest.raises(CommandError, match="32 commands are waiting already"):
        control.send(run, Command.new("somebody", "save"))


def test_only_a_run_has_an_inbox(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no such run"):
        control.send(tmp_path, Command.new("somebody", "save"))
    assert list(tmp_path.iterdir()) == []


def test_state_is_what_was_written_last(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert control.read_state(run) == {}
    control.write_state(run, {"doing": "paused"})
    assert control.read_state(run) == {"doing": "paused"}
    (run / CONTROL / STATE).write_text("[1]")
    assert control.read_state(run) == {}


@pytest.mark.parametrize("what", [[], {}, None, 7, "9" * 400])
def test_a_command_that_is_no_word_is_refused(tmp_path: Path, what: Any) -> None:
    (tmp_path / "control").mkdir()
    values = {"id": "0" * 32, "who": "me", "when": 10**400, "what": what}
    (tmp_path / "control" / f"{'0' * 32}.json").write_text(json.dumps(values))
    values |= {"id": "1" * 32, "when": 1.0}
    (tmp_path / "control" / f"{'1' * 32}.json").write_text(json.dumps(values))
    commands, refused = control.take(tmp_path)
    assert commands == []
    assert len(refused) == 2
