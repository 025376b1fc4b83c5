"""The image and what is started from it, as far as that can be seen without Docker.

`make long` executes every RUN line in an empty root (tests/e2e/test_container_root.py)."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from warpzone.cli.main import COMMANDS

ROOT = Path(__file__).parents[3]
START = ROOT / "docker" / "start.sh"


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "container_root.py"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return found


def lint(tool: str, *words: str) -> None:
    command = [str(Path(sys.executable).parent / tool), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint() -> None:
    lint("hadolint", "Dockerfile")


def test_shellcheck() -> None:
    lint("shellcheck", "docker/start.sh")


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_nothing_runs_as_root(script: dict[str, Any], target: str) -> None:
    stages = script["order"](script["parse"]((ROOT / "Dockerfile").read_text()), target)
    steps = [step for stage in stages for step in stage.steps]
    assert steps[-1] == ("USER", "1000")
    words = {word for word, _ in steps}
    assert {"HEALTHCHECK", "ENTRYPOINT", "VOLUME"} <= words
    kept = next(rest for word, rest in steps if word == "VOLUME")
    assert "/data" in kept
    runs = " ".join(rest for word, rest in steps if word == "RUN")
    assert "rom install" not in runs, "the ROM would be in the image"
    installs = re.findall(r"pip (?:install|wheel) [^&]*", runs)
    assert installs
    assert all("--no-cache-dir" in command for command in installs)


def test_only_what_a_wheel_needs_enters_the_context(script: dict[str, Any]) -> None:
    names = script["context"]()
    assert {"pyproject.toml", "CMakeLists.txt", "docker/start.sh", "src/warpzone/py.typed"} <= set(
        names
    )
    assert not [n for n in names if n.endswith((".nes", ".so", ".mp4", ".pyc"))]
    assert not [n for n in names if n.startswith((".git", ".venv", "build", "runs", "secrets"))]


def test_patterns_of_dockerignore(script: dict[str, Any]) -> None:
    ignored = script["ignored"]
    patterns = ["*", "!src", "**/*.nes"]
    assert ignored("runs/one", patterns)
    assert not ignored("src/a/b.py", patterns)
    assert ignored("src/a/b.nes", patterns)


def test_services(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert {"trainer", "dashboard", "database"} <= set(services)
    for name, service in services.items():
        if str(service["image"]).startswith("warpzone"):
            assert service["command"][0] in COMMANDS, name
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True
    text = (ROOT / "compose.yaml").read_text()
    for secret in ("dashboard_token", "database_password"):
        assert compose["secrets"][secret]["file"].startswith("./secrets/")
        assert secret in START.read_text()
    assert not re.search(r"PASSWORD: |TOKEN: ", text), "secrets are files"
    assert "/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert all(port.startswith("127.0.0.1:") for port in services["dashboard"]["ports"])
    assert "pg_isready" in services["database"]["healthcheck"]["test"]


def test_words_of_the_services_are_understood(compose: dict[str, Any]) -> None:
    """The trainer's flags, by the program itself."""
    words = compose["services"]["trainer"]["command"]
    command = [sys.executable, "-m", "warpzone.cli.main", *words, "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def start(
    tmp_path: Path, *words: str, **variables: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Runs the script with a stand-in for `warpzone` that writes down what it is told."""
    log = tmp_path / "log"
    log.write_text("")
    stand_in = tmp_path / "warpzone"
    token = "${WARPZONE_DASHBOARD_TOKEN:-} ${PGPASSWORD:-}"
    stand_in.write_text(f'#!/bin/sh\necho "$* {token}" >> {log}\nexit ${{FAIL:-0}}\n')
    stand_in.chmod(0o755)
    path = f"{tmp_path}:{Path(sys.executable).parent}:{os.defpath}"
    done = subprocess.run(
        ["sh", str(START), *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": path, "WARPZONE_SECRETS": str(tmp_path / "secrets"), **variables},
    )
    return done, [" ".join(line.split()) for line in log.read_text().splitlines()]


def test_the_first_start_installs_the_rom(tmp_path: Path) -> None:
    assert start(tmp_path, "train", "--seed", "1")[1] == ["rom install", "train --seed 1"]
    assert start(tmp_path, "train", WARPZONE_ROM="/rom.nes")[1] == ["train"]
    assert start(tmp_path, "doctor")[1] == ["doctor"]
    done, told = start(tmp_path, "train", FAIL="1")
    assert (done.returncode, told) == (1, ["rom install"]), "no ROM, no training"


def test_secrets_reach_the_program(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "dashboard_token").write_text("a-token\n")
    assert start(tmp_path, "dashboard", "runs")[1] == ["dashboard runs a-token"]
    (tmp_path / "secrets" / "database_password").write_text("word")
    assert start(tmp_path, "dashboard")[1] == ["dashboard a-token word"]


def test_health(tmp_path: Path) -> None:
    port = "9"  # nobody listens there
    assert start(tmp_path, "--healthy", WARPZONE_PORT=port)[1] == ["doctor"]
    assert start(tmp_path, "--healthy", WARPZONE_PORT=port, FAIL="1")[0].returncode == 1
    served = start(tmp_path, "--healthy", WARPZONE_PORT=port, WARPZONE_SERVES="1")
    assert (served[0].returncode, served[1]) == (1, []), "a dashboard must answer"
