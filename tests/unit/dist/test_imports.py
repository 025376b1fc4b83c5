"""A run in one process loads nothing of what many processes need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rank_commands import SMALL

#: Trains with the words it is given, and says what was loaded by then.
PROGRAM = """
import sys
from warpzone.cli.main import main

heavy = {"ray", "optuna", "lightning"}
assert not heavy & set(sys.modules), "by the command"
assert main(sys.argv[1:]) == 0
print("loaded:", sorted(heavy & set(sys.modules)))
"""


def test_a_plain_run_loads_neither_ray_nor_optuna_nor_lightning(tmp_path: Path) -> None:
    words = ["train", *SMALL, "--runs-dir", str(tmp_path), "--max-steps", "32"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded: []"
