"""The commands of docs/installing.md for uv, as they stand, in a copy of the tree: what they
install trains."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import uv
from markdown_pages import ROOT, blocks

pytestmark = [pytest.mark.long, pytest.mark.limit(3600)]
SMALL = (
    "train --num-envs 4 --groups 1 --rollout-steps 8 --minibatch 16 --epochs 1 --size 36 "
    "--encoder-width 0.125 --hidden-size 16 --max-steps 64 --eval-interval 0 --device cpu"
)


def test_it_installs_and_trains(tmp_path: Path) -> None:
    (block,) = [b for b in blocks("docs/installing.md") if "uv venv" in b.text]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    tree = tmp_path / "warpzone"
    for name in filter(None, listed.stdout.decode().split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    # Not `python -m uv`, which installs into the environment of that Python.
    (tools / "uv").symlink_to(uv.find_uv_bin())
    (tools / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    kept = ("PIP_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "LANG")
    variables = {key: value for key, value in os.environ.items() if key.startswith(kept)}
    variables |= {
        "PATH": f"{tools}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        # The versions of the tests, from where pip would take them on this machine too.
        "UV_CONSTRAINT": str(ROOT / "requirements.lock"),
        "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS", ""),
        "WARPZONE_DATA": str(tmp_path / "data"),
        "WARPZONE_CACHE": str(tmp_path / "cache"),
    }
    # The environment that is made is the one that is installed into.
    script = f"set -e\n{block.text}\n.venv/bin/warpzone {SMALL}\nuv pip freeze"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tree,
        env=variables,
        capture_output=True,
        text=True,
        timeout=3000,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "eu: " in done.stdout
    assert re.search(r"\[train\] 64 steps in", done.stdout)
    assert f"warpzone @ file://{tree}" in done.stdout
