"""The faults that `make mutants` plants: every one can still be planted, and verdicts are true."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "scripts" / "mutants.py"


@pytest.fixture(scope="module")
def mutants() -> Any:
    spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # Dataclasses look their own module up.
    spec.loader.exec_module(module)
    return module


def test_every_fault_can_be_planted(mutants: Any) -> None:
    """Who changes such a line changes its fault as well: tests/faults."""
    faults = mutants.load()
    mutants.check(faults)
    assert len(faults) > 100
    assert {fault.package for fault in faults} >= {"algo", "learn", "collect", "run", "engine"}


def fault(mutants: Any, **changes: Any) -> Any:
    values = {
        "package": "algo",
        "name": "sign",
        "file": "source.py",
        "old": "a + b",
        "new": "a - b",
        "tests": ("test_source.py",),
    }
    return mutants.Fault(**{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"old": "a * b"}, "has its text 0 times, not once"),
        ({"old": "a"}, "has its text 3 times, not once"),
        ({"new": "a + b"}, "changes nothing"),
        ({"tests": ("test_nothing.py",)}, r"there is no test_nothing\.py"),
        ({"tests": ("engine:test_none",)}, r"there is no engine/tests/test_none\.cpp"),
    ],
    ids=str,
)
def test_faults_that_do_not_fit_are_refused(
    mutants: Any, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    (tmp_path / "source.py").write_text("def add(a, b):\n    return a + b\n")
    (tmp_path / "test_source.py").touch()
    mutants.check([fault(mutants)], tmp_path)
    with pytest.raises(mutants.FaultError, match=message):
        mutants.check([fault(mutants, **changes)], tmp_path)
    with pytest.raises(mutants.FaultError, match="is there twice"):
        mutants.check([fault(mutants)] * 2, tmp_path)


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({}, "caught"),
        ({"old": "# why", "new": "# how"}, "survived"),
        ({"old": "import math", "new": "import no_such_module"}, "invalid"),
        ({"old": "return a", "new": "__import__('time').sleep(1000)\n    return a"}, "timeout"),
    ],
    ids=["caught", "survived", "invalid", "timeout"],
)
def test_verdicts(
    mutants: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, str],
    result: str,
) -> None:
    source = tmp_path / "source.py"
    source.write_text("import math  # why\n\n\ndef add(a, b):\n    return a + b\n")
    (tmp_path / "test_source.py").write_text(
        "from source import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    )
    copy = object.__new__(mutants.Copy)
    copy.place = tmp_path
    monkeypatch.setenv("WARPZONE_ROM", "none")
    before = source.read_text()
    limit = 5.0 if result == "timeout" else 120.0
    assert copy.planted(fault(mutants, **changes), limit) == result
    assert source.read_text() == before


#: Says where it works, and waits in another thread for a process with a session of its own.
WORKING = """
import signal, subprocess, sys, threading
for number in (signal.SIGINT, signal.SIGTERM):
    # In the background of a shell it may be ignored, and would stay so.
    signal.signal(number, signal.SIG_DFL)
sys.path.insert(0, sys.argv[1])
from mutation.place import hold_if_stopped, workplace

def work(place):
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        (place / "copy").touch()
        print(place, process.pid, flush=True)
        process.wait()
    hold_if_stopped()
    print("a verdict", flush=True)

with workplace() as place:
    thread = threading.Thread(target=work, args=(place,))
    thread.start()
    thread.join()
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT], ids=str)
def test_a_signal_leaves_nothing_behind(signum: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORKING, str(SCRIPT.parent)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        place, pid = process.stdout.readline().split()
        assert (Path(place) / "copy").exists()
        process.send_signal(signum)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    assert said == ""
    assert not Path(place).exists()
    assert not psutil.pid_exists(int(pid))


def test_scores(mutants: Any) -> None:
    faults = [fault(mutants, name=name) for name in ("one", "two", "three")]
    faults.append(fault(mutants, package="run", name="four"))
    results = {"algo/one": {"result": "caught"}, "algo/two": {"result": "survived"}}
    table = mutants.scores(faults, results)
    assert table["algo"] == {
        "faults": 3, "caught": 1, "timeout": 0, "survived": 1, "invalid": 0, "not run": 1,
    }  # fmt: skip
    assert table["run"]["not run"] == 1
