"""The entry point: what holds for every command."""

import os
import subprocess
import sys

import pytest

#: Runs a command, then asks what PyTorch's OpenMP runtime reads when it is loaded.
PROGRAM = """
import sys
from warpzone.cli.main import main
assert main(sys.argv[1:]) == 0
assert "torch" not in sys.modules
import os, torch
print(os.environ["OMP_WAIT_POLICY"])
"""


@pytest.mark.parametrize(("given", "used"), [("", "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_waiting_threads_leave_the_cores_to_others(given: str, used: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"}
    if given:
        environment["OMP_WAIT_POLICY"] = given
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "agents"],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == used
