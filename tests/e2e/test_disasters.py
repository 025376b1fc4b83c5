"""A run that is killed, or meets disasters, again and again: `scripts/kill_test.py` and
`scripts/disaster_test.py` find nothing wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LONG = pytest.mark.long
SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str, *words: str) -> dict[str, Any]:
    """The result of a script that must find nothing wrong."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / name), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["ok"], result
    assert done.returncode == 0
    return result


@pytest.mark.parametrize(
    ("kind", "kills"), [("plain", 3), ("stateful", 6), pytest.param("plain", 200, marks=LONG)]
)
def test_killed_again_and_again(kind: str, kills: int) -> None:
    result = script("kill_test.py", "--kind", kind, "--kills", str(kills))
    assert result["kills"] == kills
    assert result["differing_parts"] == []
    assert (result["at_the_end"]["segments_in_the_replay"] > 0) is (kind == "stateful")


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_disasters() -> None:
    result = script("disaster_test.py", "--each", "6")
    assert all(one["disasters"] == 6 for one in result["kinds"].values())
