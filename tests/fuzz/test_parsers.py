"""A minute of inputs of all fuzz targets; `make fuzz` runs many more."""

import json
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
    done = fuzz("--even", "--runs", "1300", "--seconds", "30")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    ran = dict(re.findall(r"^(\w+): ([\d,]+) inputs in .* 0 failed$", done.stdout, re.MULTILINE))
    listed = re.findall(r"^(\w+): ", fuzz("--dry-run").stdout, re.MULTILINE)
    assert len(listed) == 16
    assert list(ran) == listed
    assert {"run_folder": "1,300", "report": "1,300", "movie": "195,000"}.items() <= ran.items()


def test_an_input_depends_on_its_number_alone() -> None:
    """Whatever was made before, or a failure could not be repeated."""
    code = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
from mutate import Mutator
seed = {{"a": {{"b": [1, 2]}}, "c": "x"}}
first = [Mutator(number).lines([seed]) for number in range(300)]
print(first == [Mutator(number).lines([seed]) for number in range(300)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


@LINUX
def test_processes_share_the_inputs(tmp_path: Path) -> None:
    """Every number once, whoever has it, and the result of all of them is written."""
    out = tmp_path / "out.json"
    out.write_text('["before"]')
    words = ("movie", "report", "--even", "--runs", "5", "--seconds", "30", "--out", str(out))
    done = fuzz(*words, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"(\d+) inputs in .* 0 failed", done.stdout) == ["750", "5"]
    before, result = json.loads(out.read_text())
    assert before == "before"
    assert result["command"].endswith("--even --jobs 2")
    assert [found["inputs"] for found in result["targets"].values()] == [750, 5]
    code = f"""
import sys
sys.path.insert(0, {str(SCRIPT.parent)!r})
import argparse, fuzz_parsers
from pathlib import Path
numbers = []
for part in range(3):
    args = argparse.Namespace(seed=100, runs=8, part=part, parts=3, seconds=30, most_failures=1)
    one = fuzz_parsers.Target("x", lambda number, folder: numbers.append(number), args)
    one.folder = Path({str(tmp_path)!r}) / "in"
    while one.left:
        one.input(lambda number: number)
print(sorted(numbers) == list(range(100, 108)))
"""
    (tmp_path / "in").mkdir()
    alone = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert alone.stdout == "True\n", alone.stderr


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
