"""The Dockerfile's steps, executed one by one in an empty root."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "container_root.py"


@pytest.mark.long
@pytest.mark.limit(3600)
def test_every_step_works_in_an_empty_root(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not (shutil.which("debootstrap") and shutil.which("bwrap")):
        pytest.skip("needs root, debootstrap and bwrap")
    # As the image's user: nothing of a ROM is there, and all but the ROM is found.
    inside = "id -u; find / -xdev -name '*.nes'; ls -A /data; warpzone doctor || test $? = 1"
    command = [sys.executable, str(SCRIPT), "--work", str(tmp_path / "roots"), "--then", inside]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3500, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = done.stdout.partition("container_root: cpu is in")[2].splitlines()
    assert said[1] == "1000"
    assert said[2].startswith("ok "), f"a ROM or a cache is in the image: {said[2]}"
    assert any(line.startswith("ok") and " torch " in line for line in said)
    assert any(line.startswith("problem") and " rom " in line for line in said)
