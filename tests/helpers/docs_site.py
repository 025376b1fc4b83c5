"""The documentation site, built as `make docs` builds it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build_site(folder: Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Builds the site of a tree into a folder; a warning is a failure."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def shared_site(factory: pytest.TempPathFactory) -> Path:
    """The site of this tree, built once for all processes of the session."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    site = folder / "site"
    with (folder / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not site.is_dir():
            done = build_site(folder / "site.new")
            assert done.returncode == 0, done.stderr
            (folder / "site.new").rename(site)
    return site
