"""Ranks that nobody but a person or SLURM starts: one process for each, with variables that say
where it belongs. Two processes of this machine stand for machines and tasks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from rank_commands import (
    ENDLESS,
    LOST_WITHIN,
    PATIENCE,
    SMALL,
    ended_within,
    free_port,
    last_words,
    listening,
    start,
    wait_for_update,
)

from warpzone.cli.main import main
from warpzone.run.reader import read_rows

#: What SLURM tells the two tasks of a step on one machine.
STEP = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "3",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_NUM_NODES": "1",
    "SLURM_NTASKS": "2",
    "SLURM_NNODES": "1",
    "SLURM_NODEID": "0",
    "SLURM_STEP_NODELIST": "nowhere[1-2]",
}


def require_one_run(both: list[subprocess.Popen[str]], folder: Path) -> None:
    """Both processes end well, with one run of three updates, of which the first tells."""
    said = [process.communicate(timeout=PATIENCE)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert "2 ranks" in said[0]
    assert said[1] == ""
    assert [path.name for path in folder.iterdir() if path.name != "tmp"] == ["one"]
    rows = list(read_rows(folder / "one", "metrics.jsonl"))
    assert [row["update"] for row in rows] == [1, 2, 3]
    assert all("communication_time_share" in row for row in rows)


@pytest.mark.limit(600)
def test_machines_that_are_started_by_hand(tmp_path: Path) -> None:
    hosts = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
        "GLOO_SOCKET_IFNAME": "lo",
    }
    words = ["--nodes", "2", "--max-steps", "96"]
    both = [start(tmp_path, *words, variables={**hosts, "NODE_RANK": node}) for node in "01"]
    require_one_run(both, tmp_path)


@pytest.mark.parametrize("node", ["0", "1"])
def test_a_machine_without_a_port_says_so(
    node: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them, for itself: nobody sees the others' variables."""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("NODE_RANK", node)
    monkeypatch.delenv("MASTER_PORT", raising=False)
    assert main(["train", *SMALL, "--runs-dir", str(tmp_path / "runs"), "--nodes", "2"]) == 2
    (said,) = capfd.readouterr().err.strip().splitlines()
    assert said.startswith("warpzone train: --nodes 2: MASTER_PORT must be set on each machine;")
    assert not (tmp_path / "runs").exists()


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    """A folder for temporary files in which nothing is left."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    yield folder
    assert list(folder.glob("warpzone-ranks*")) == []


def tasks(folder: Path, *words: str, job: str, places: Path) -> list[subprocess.Popen[str]]:
    """The tasks of a step, in a job of this name."""
    step = {**STEP, "SLURM_JOB_NAME": job, "TMPDIR": str(places)}
    both = [{**step, "SLURM_PROCID": task, "SLURM_LOCALID": task} for task in "01"]
    return [start(folder, *words, variables=variables) for variables in both]


@pytest.mark.limit(600)
def test_the_tasks_of_a_step_are_one_run(tmp_path: Path, places: Path) -> None:
    both = tasks(tmp_path, "--max-steps", "96", job="bash", places=places)
    require_one_run(both, tmp_path)
    # Without them it goes on in one process, and says what became of the lanes.
    alone = start(tmp_path, "--max-steps", "128", "--resume", "auto")
    _, said = alone.communicate(timeout=PATIENCE)
    assert alone.returncode == 0, said
    assert said.count("the 4 lanes of 2 ranks are dealt anew to one rank") == 1


@pytest.mark.limit(600)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_killed_task_ends_the_other(lost: int, tmp_path: Path, places: Path) -> None:
    both = tasks(tmp_path, *ENDLESS, job="mine", places=places)
    wait_for_update(tmp_path)
    seen = [psutil.Process(process.pid) for process in both]
    # Nobody but this machine can talk to them, and they have started nobody.
    assert [listening(one) for one in seen] == [{"127.0.0.1"}] * 2
    assert [one.children() for one in seen] == [[], []]
    with ended_within(LOST_WITHIN):
        both[lost].kill()
        (sentence,) = last_words(both[1 - lost])
    assert sentence.startswith(f"warpzone train: rank {lost} is gone: the run ends;")
    assert both[1 - lost].returncode == 1
    assert last_words(both[lost]) == []


#: Rank 1 ends without a word while rank 0 waits for it.
LEAVING = """
import os
from warpzone.config import TrainConfig
from warpzone.dist.launch import run_ranks
from warpzone.dist.place import find_place

config = TrainConfig(device="cpu", num_envs=4, groups=2, minibatch=16, run_name="one")
place = find_place(config)

def work(config, ranks):
    return 0 if not place.leads and os._exit(3) else len(ranks.gather(0))

raise SystemExit(run_ranks(place, config, work, lambda sentence: print("told:", sentence)))
"""


@pytest.mark.limit(600)
def test_a_rank_of_torchrun_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(LEAVING)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run.append(str(tmp_path / "leaving.py"))
    done = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.startswith("warpzone train:")]
    assert len(said) == 1, done.stderr
    assert said[0].startswith("warpzone train: rank 1 is gone: the run ends;")
