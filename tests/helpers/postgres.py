"""A PostgreSQL server of a test's own: on the loopback address, with a password."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PASSWORD = "opense same%21"
QUOTED = "opense%20same%2521"
USER = "mario"


def _bin() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if on_path:
        found.append(Path(on_path))
    if not found:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    return found[-1].parent


def _as_nobody_special(words: list[str]) -> list[str]:
    """PostgreSQL refuses to be run by root."""
    if os.getuid() != 0:
        return words
    return ["su", "postgres", "-s", "/bin/sh", "-c", shlex.join(words)]


def _run(words: list[str]) -> None:
    done = subprocess.run(
        _as_nobody_special(words),
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def server() -> Iterator[str]:
    """The URL of an empty database, password included."""
    programs = _bin()
    folder = Path(tempfile.mkdtemp(prefix="wz-pg-"))
    secret = folder / "secret"
    secret.write_text(PASSWORD + "\n")
    if os.getuid() == 0:
        owner = pwd.getpwnam("postgres")
        for path in (folder, secret):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = f"-p {port} -h 127.0.0.1 -k {folder} -c fsync=off"
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
    try:
        _run(
            [
                str(programs / "initdb"),
                "-D",
                str(data),
                "-U",
                USER,
                "-A",
                "scram-sha-256",
                f"--pwfile={secret}",
                "-N",
                "--no-locale",
                "-E",
                "UTF8",
            ]
        )
        _run([*control, "-o", options, "start"])
        try:
            yield f"postgresql://{USER}:{QUOTED}@127.0.0.1:{port}/postgres"
        finally:
            _run([*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
