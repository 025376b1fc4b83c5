"""A few hundred inputs of every fuzz target; `make fuzz` runs many more."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "fuzz_parsers.py"
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are Linux's")


def fuzz(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True)


@LINUX
def test_no_input_is_more_than_one_sentence() -> None:
    # Generous: a busy machine makes nothing fail, and what hangs still ends.
    done = fuzz("--runs", "150", "--seconds", "30")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert len(re.findall(r"150 inputs in .* 0 failed", done.stdout)) == 10


@LINUX
@pytest.mark.parametrize("broken", ["raises", "slow", "greedy"])
def test_the_fuzzer_notices(broken: str) -> None:
    """With a parser that does what none may do."""
    bad = {"raises": "raise KeyError(1)", "slow": "while True: pass", "greedy": "bytes(1 << 30)"}
    code = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
sys.argv = ["fuzz", "movie", "--runs", "3", "--seconds", "0.2"]
import targets, fuzz_parsers
good = targets.parse_movie
calls = []
def bad(data):
    calls.append(data)
    # The first input is the one without limits.
    if len(calls) == 1:
        return good(data)
    {bad[broken]}
targets.parse_movie = bad
sys.exit(fuzz_parsers.main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "movie: 3 inputs" in done.stdout
    assert {"raises": "KeyError", "slow": "TooSlowError", "greedy": "MemoryError"}[
        broken
    ] in done.stdout
