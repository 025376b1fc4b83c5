"""`warpzone train --notify`: the webhook hears of the end, and nobody else learns its address."""

import os
import signal
import sys
from pathlib import Path

import pytest
from http_servers import listening

from warpzone.cli.main import main
from warpzone.cli.notify import take_address

SECRET = "S3CR3T"
TINY = [
    *("--preset", "quick", "--num-envs", "2", "--rollout-steps", "8", "--minibatch", "16"),
    *("--size", "36", "--encoder-width", "0.125", "--hidden-size", "16", "--epochs", "1"),
    *("--max-steps", "32", "--device", "cpu", "--num-threads", "1", "--wall-lanes", "0"),
]


def files_with(secret: str, folder: Path) -> list[str]:
    every = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in every if secret.encode() in path.read_bytes()]


def train(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["warpzone", "train", *words])
    return main()


def test_the_end_is_told_and_the_address_is_in_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARPZONE_NOTIFY", "http://127.0.0.1:9/never")
    with listening() as posted:
        words = [*TINY, "--run-name", "one", "--alert-disk-gb", "1e9"]
        words += ["--notify", f"http://127.0.0.1:{posted.port}/{SECRET}"]
        assert train(words, monkeypatch) == 0
    assert posted.events == ["alert", "end"]
    last = posted.messages[-1]
    assert (last["run"], last["global_step"], last["update"]) == ("one", 32, 2)
    assert last["text"].startswith("one: 32 steps in ")
    out, err = capfd.readouterr()
    assert SECRET not in out + err
    assert "--notify (hidden)" in " ".join(sys.argv)
    assert files_with("--notify", tmp_path) == ["versions.json"]
    assert files_with(SECRET, tmp_path) == []


def test_a_failure_is_told_and_a_dead_server_does_not_change_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "runs" / "one" / "config.json").write_text("{}")
    words = [*TINY, "--run-name", "one"]
    with listening() as posted:
        monkeypatch.setenv("WARPZONE_NOTIFY", f"http://127.0.0.1:{posted.port}/{SECRET}")
        assert train(words, monkeypatch) == 2
        posted.status = 500
        assert train(words, monkeypatch) == 2
    assert posted.events[0] == "failure"
    assert "exists already" in posted.messages[0]["text"]
    assert "a run that did not begin: " in posted.messages[0]["text"]
    err = capfd.readouterr().err
    assert "event failure did not reach http://127.0.0.1/…: it answered 500" in err
    assert SECRET not in err


def test_an_interruption_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with listening() as posted:
        address = f"http://127.0.0.1:{posted.port}/"
        monkeypatch.setattr(
            "warpzone.observers.log.LogObserver.updated",
            lambda *_: os.kill(os.getpid(), signal.SIGTERM),
        )
        code = train([*TINY, "--run-name", "one", "--notify", address], monkeypatch)
    assert code == 128 + signal.SIGTERM
    assert posted.events == ["interrupt"]
    assert posted.messages[0]["update"] == 1


def test_a_wrong_address_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert train([*TINY, "--notify", f"ftp://host/{SECRET}"], monkeypatch) == 2
    err = capfd.readouterr().err
    assert "--notify takes an address that begins with http:// or https://" in err
    assert SECRET not in err
    assert not (tmp_path / "runs").exists()


def test_both_ways_to_write_the_flag_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPZONE_NOTIFY", "http://from/variable")
    monkeypatch.setattr(sys, "argv", ["warpzone", "train", f"--notify=http://a/{SECRET}"])
    words = [f"--notify=http://a/{SECRET}", "--lr", "1"]
    assert take_address(words) == f"http://a/{SECRET}"
    assert words == ["--lr", "1"]
    assert sys.argv == ["warpzone", "train", "--notify=(hidden)"]
    assert take_address([]) == "http://from/variable"
