"""Fetches the wheel that holds the ROMs, with the user's own installer and its settings: index,
proxy and certificates are those of pip, or of uv where an environment has no pip."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

#: The wheel on the package index that holds both ROMs.
WHEEL = "gym-super-mario-bros==7.4.0"
FOLDER_IN_WHEEL = "gym_super_mario_bros/_roms/"
_DOWNLOAD_SECONDS = 600
_LOOK_SECONDS = 60


class DownloadError(Exception):
    """Why the wheel cannot be fetched; a few words."""


def fetch(folder: Path) -> Path:
    """The wheel, stored in `folder`."""
    if find_spec("pip") is not None:
        command = [*_pip("download"), "--only-binary=:all:", "--dest", str(folder), WHEEL]
        _run("pip", command, _DOWNLOAD_SECONDS)
        wheels = list(folder.glob("*.whl"))
        if not wheels:
            raise DownloadError("pip stored no wheel")
        return wheels[0]
    # uv downloads no wheels, but installs them wherever it is told to.
    installed = folder / "installed"
    _run("uv", [*_uv(), "--target", str(installed), WHEEL], _DOWNLOAD_SECONDS)
    wheel = folder / "packed.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in (installed / FOLDER_IN_WHEEL).glob("*.nes"):
            archive.write(file, FOLDER_IN_WHEEL + file.name)
    return wheel


def look(folder: Path) -> None:
    """Asks the index for the wheel and downloads nothing that is kept; DownloadError says why the
    wheel cannot be had. A failing connection is not tried again."""
    if find_spec("pip") is not None:
        command = [*_pip("install"), "--dry-run", "--ignore-installed", "--only-binary=:all:"]
        _run("pip", [*command, "--retries", "0", "--timeout", "5", WHEEL], _LOOK_SECONDS)
    else:
        command = [*_uv(), "--dry-run", "--target", str(folder), WHEEL]
        _run("uv", command, _LOOK_SECONDS, UV_HTTP_TIMEOUT="5", UV_HTTP_RETRIES="0")


def _pip(action: str) -> list[str]:
    command = [sys.executable, "-m", "pip", action, "--no-deps", "--quiet"]
    return [*command, "--disable-pip-version-check"]


def _uv() -> list[str]:
    tool = shutil.which("uv")
    if tool is None:
        raise DownloadError("neither pip nor uv is there; `python -m ensurepip` installs pip")
    return [tool, "pip", "install", "--no-deps", "--quiet", "--python", sys.executable]


def _run(tool: str, command: list[str], seconds: float, **variables: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command of the user's own installer
            command,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env={**os.environ, **variables},
        )
    except subprocess.TimeoutExpired as error:
        raise DownloadError(f"{tool}: no answer within {seconds} seconds") from error
    except OSError as error:
        raise DownloadError(f"{tool} does not run: {error.strerror}") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise DownloadError(f"{tool}: {lines[-1].strip()}")
