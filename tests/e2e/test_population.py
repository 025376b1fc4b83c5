"""`warpzone population` as a user runs it, on a real Ray: all of it is killed and goes on, weights
are exchanged, a member is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tiny_spaces import write

pytest.importorskip("torch")
pytest.importorskip("optuna")
pytest.importorskip("ray")

from safetensors.numpy import load_file

from warpzone.cli.main import main

OUT = pytest.CaptureFixture[str]
STEPS, EXCHANGE, MEMBERS = 128, 64, 3
PROGRAM = (sys.executable, "-m", "warpzone.cli.main")
#: The clip of PPO without its condition; a population has none.
SPACE = {
    "clip": {"low": 0.1, "high": 0.3},
    "algo": {"choices": ["ppo", "a2c"]},
    "reward_death": {"low": -5.0, "high": -0.5},
}
FIXED = {"max_steps": STEPS, "eval_interval": EXCHANGE, "checkpoint_interval": 1, "keep_last": 9}


@dataclass
class Seen:
    """A population, and what was seen of it while it trained."""

    folder: Path
    said: str
    code: int
    killed: int
    listening: set[str]
    processes: set[str]
    #: What members had written down when all of it was killed.
    before: dict[str, list[str]]


def _look(process: subprocess.Popen[str], seen: Seen) -> None:
    """Notes who listens where, and kills a member that has a value to lose."""
    family = psutil.Process(process.pid).children(recursive=True)
    values = list((seen.folder / "members").glob("*.jsonl"))
    begun = sum(path.read_text().count('"value"') > 0 for path in values) >= 2
    for child in family:
        try:
            seen.processes.add(" ".join(child.cmdline()))
            for socket in child.net_connections("tcp"):
                if socket.status == psutil.CONN_LISTEN:
                    seen.listening.add(socket.laddr.ip)
            if begun and not seen.killed and "Trainable.train" in " ".join(child.cmdline()):
                seen.killed = child.pid
                os.kill(child.pid, signal.SIGKILL)
        except (psutil.Error, ProcessLookupError):
            continue


def _lines(folder: Path) -> dict[str, list[str]]:
    return {
        path.stem: path.read_text().splitlines() for path in (folder / "members").glob("*.jsonl")
    }


def _kill_at_the_first_value(process: subprocess.Popen[str], seen: Seen) -> None:
    """The command itself; Ray's processes and the members end with it."""
    if any('"value"' in line for lines in _lines(seen.folder).values() for line in lines):
        family = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        psutil.wait_procs(family, timeout=60)
        seen.before = _lines(seen.folder)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    folder = tmp_path_factory.mktemp("populations")
    space = write(folder / "tiny.toml", space=SPACE, fixed=FIXED, pruner="none")
    found = Seen(folder / "tiny", "", 0, 0, set(), set(), {})
    words = ["--members", str(MEMBERS), "--workers", "2", "--exchange", str(EXCHANGE)]
    log = folder / "said.txt"
    end = time.monotonic() + 840
    for look in (_kill_at_the_first_value, _look):
        with (
            log.open("w") as file,
            subprocess.Popen(
                [*PROGRAM, "population", str(space), *words, "--runs-dir", str(folder)],
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            ) as process,
        ):
            while process.poll() is None and time.monotonic() < end:
                try:
                    look(process, found)
                except psutil.Error:
                    break
                time.sleep(0.2)
            process.kill() if process.poll() is None and time.monotonic() >= end else process.wait()
    found.said, found.code = log.read_text(), int(process.returncode or 0)
    return found


def record(seen: Seen) -> dict[str, Any]:
    return dict(json.loads((seen.folder / "population.json").read_text()))


def test_a_killed_population_goes_on(seen: Seen) -> None:
    assert seen.code == 0, seen.said
    assert "is there already and goes on" in seen.said
    ahead = [member for member, lines in seen.before.items() if '"value"' in lines[-1]]
    assert ahead
    after = _lines(seen.folder)
    for member, lines in seen.before.items():
        assert after[member][: len(lines)] == lines
        # Nobody began anew, with other settings or from nothing.
        begun = [json.loads(line) for line in after[member] if '"begin"' in line]
        assert [row["parent"] is None for row in begun] == [True] + [False] * (len(begun) - 1)


def test_a_finished_population_is_not_trained_again(seen: Seen, capsys: OUT) -> None:
    before = _lines(seen.folder)
    space = seen.folder.parent / "tiny.toml"
    words = ["--members", str(MEMBERS), "--runs-dir", str(space.parent)]
    assert main(["population", str(space), *words, "--exchange", str(EXCHANGE)]) == 0
    assert "[population] best: member-" in capsys.readouterr().out
    assert _lines(seen.folder) == before
    assert main(["population", str(space), *words, "--exchange", "32"]) == 2
    assert "is a population with --exchange 64" in capsys.readouterr().err


def test_a_killed_member_goes_on(seen: Seen) -> None:
    assert seen.code == 0, seen.said
    assert seen.killed
    runs = record(seen)["runs"]
    assert {run["member"] for run in runs} == set(range(MEMBERS))
    for member in range(MEMBERS):
        own = [point for run in runs if run["member"] == member for point in run["points"]]
        assert [point["step"] for point in own] == [64, 128]
    # It went on in its folder: the second session of its run is a resumed one.
    sessions = [json.loads(path.read_text())["sessions"] for path in _versions(seen)]
    assert any(len(own) > 1 and own[1]["resumed_from"] for own in sessions)


def _versions(seen: Seen) -> list[Path]:
    return sorted(seen.folder.glob("member-*/versions.json"))


def test_weights_and_settings_come_from_the_parent(seen: Seen) -> None:
    runs = {run["run"]: run for run in record(seen)["runs"]}
    children = [run for run in runs.values() if run["parent"]]
    assert children
    for child in children:
        parent = runs[child["parent"]]
        update = f"{child['step'] // 32:07d}"
        files = [
            next((seen.folder / run / "checkpoints").glob(f"*_{update}.safetensors"))
            for run in (child["run"], parent["run"])
        ]
        mine, theirs = (load_file(path) for path in files)
        assert mine.keys() == theirs.keys()
        assert all((mine[name] == theirs[name]).all() for name in mine)
        assert child["settings"] != parent["settings"]
        config = json.loads((seen.folder / child["run"] / "config.json").read_text())
        assert {name: config[name] for name in child["settings"]} == child["settings"]


def test_nothing_listens_beyond_this_machine(seen: Seen) -> None:
    assert seen.listening
    assert {address.removeprefix("::ffff:") for address in seen.listening} == {"127.0.0.1"}
    # Ray starts the process of its dashboard in any case; here it has neither page nor modules.
    dashboards = [words for words in seen.processes if "dashboard/dashboard.py" in words]
    assert all("--disable-frontend" in words for words in dashboards)
    assert all("--modules-to-load=UsageStatsHead" in words for words in dashboards)


def test_nothing_is_left_over(seen: Seen) -> None:
    names = {path.name for path in seen.folder.iterdir()}
    assert {name for name in names if not name.startswith("member")} == {"population.json"}
    assert not [pid for pid in (seen.killed,) if psutil.pid_exists(pid)]


def test_the_report_draws_the_lineage(seen: Seen, tmp_path: Path) -> None:
    page = tmp_path / "population.html"
    assert main(["report", str(seen.folder), "--out", str(page)]) == 0
    text = page.read_text()
    assert "Lineage" in text
    assert record(seen)["command"].replace("'", "&#x27;") in text


def test_wrong_usage_is_one_sentence(tmp_path: Path, capsys: OUT) -> None:
    space = str(write(tmp_path / "tiny.toml"))
    runs = tmp_path / "runs"
    words = ["population", space, "--members", "2", "--runs-dir", str(runs)]
    assert main(words) == 2
    assert "`when` is for sweeps only" in capsys.readouterr().err
    write(tmp_path / "tiny.toml", space=SPACE)
    assert main([*words, "--exchange", "-1"]) == 2
    assert "--exchange must not be negative" in capsys.readouterr().err
    assert main([*words, "--quantile", "0"]) == 2
    assert not runs.exists()
