"""`warpzone train --devices 2` as a user has it: started, killed, stopped, restarted, refused.
`test_starters.py` has the ranks that SLURM and people start."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
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

from warpzone.run.checkpoints import Checkpoints
from warpzone.run.reader import read_rows


def require_whole(folder: Path) -> int:
    """Every checkpoint that is there is whole; returns the newest one's update."""
    checkpoints = Checkpoints(folder / "one" / "checkpoints")
    stems = checkpoints.stems()
    # The side-car comes last: who is killed while writing leaves parts of one more.
    written = [stem for stem in stems if (checkpoints.folder / f"{stem}.json").is_file()]
    assert stems[-len(written) :] == written
    assert len(stems) <= len(written) + 1
    found = [checkpoints.open(stem) for stem in written]
    for checkpoint in found:
        checkpoint.verify()
    return max(checkpoint.sidecar.global_update for checkpoint in found)


def other_rank(process: subprocess.Popen[str]) -> psutil.Process:
    """Rank 1, which rank 0 has started."""
    (child,) = psutil.Process(process.pid).children()
    return child


@pytest.fixture
def begun(tmp_path: Path) -> subprocess.Popen[str]:
    process = start(tmp_path, "--devices", "2", "--rank-timeout", "10", *ENDLESS)
    wait_for_update(tmp_path)
    return process


@pytest.mark.limit(600)
def test_a_killed_rank_ends_the_other(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    other = other_rank(begun)
    # Nobody but this machine can talk to them.
    assert listening(psutil.Process(begun.pid)) | listening(other) == {"127.0.0.1"}
    with ended_within(LOST_WITHIN):
        other.kill()
        (sentence,) = last_words(begun)
    assert sentence.startswith("warpzone train: rank 1 was killed by SIGKILL: the run ends")
    assert begun.returncode == 1
    assert require_whole(tmp_path) >= 2


@pytest.mark.limit(600)
def test_the_others_end_without_rank_0(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    other = other_rank(begun)
    with ended_within(LOST_WITHIN):
        begun.kill()
        # It holds the same pipe, which closes when it ends.
        (sentence,) = last_words(begun)
        other.wait(PATIENCE)
    assert "rank 0 is gone" in sentence or "another rank ended" in sentence
    assert require_whole(tmp_path) >= 2


@pytest.mark.limit(900)
def test_a_stopped_rank_is_given_up(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    other = other_rank(begun)
    with ended_within(10 + LOST_WITHIN):
        other.suspend()
        (sentence,) = last_words(begun)
    assert "did not answer for 10 s" in sentence
    assert begun.returncode == 1
    assert not other.is_running() or other.status() == psutil.STATUS_ZOMBIE
    assert require_whole(tmp_path) >= 2


@pytest.mark.limit(900)
def test_a_rank_without_memory_ends_the_other(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    other = other_rank(begun)
    resource.prlimit(other.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
    words = last_words(begun)
    assert len(words) == 1
    assert "memory ran out" in words[0] or "rank 1" in words[0]
    assert begun.returncode == 1
    assert require_whole(tmp_path) >= 2


@pytest.mark.limit(600)
def test_a_signal_to_one_rank_ends_all_with_a_checkpoint(
    begun: subprocess.Popen[str], tmp_path: Path
) -> None:
    other_rank(begun).send_signal(signal.SIGTERM)
    _, said = begun.communicate(timeout=PATIENCE)
    assert begun.returncode == 128 + signal.SIGTERM
    assert "interrupted at step" in said
    newest = Checkpoints(tmp_path / "one" / "checkpoints")
    sidecar = newest.open(newest.stems()[0]).sidecar
    assert sidecar.reason == "interrupt"
    rows = list(read_rows(tmp_path / "one", "metrics.jsonl"))
    assert sidecar.global_update == rows[-1]["update"] == require_whole(tmp_path)


@pytest.mark.limit(900)
def test_torchrun_restarts_from_the_last_checkpoint(tmp_path: Path) -> None:
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run += ["--max-restarts", "1", "-m", "warpzone.cli.main", "train"]
    process = start(tmp_path, "--max-steps", "640", command=run)
    wait_for_update(tmp_path, 3)
    ranks = [one for one in psutil.Process(process.pid).children() if one.is_running()]
    ranks[-1].kill()
    _, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    assert "resuming from" in said
    rows = [row["update"] for row in read_rows(tmp_path / "one", "metrics.jsonl")]
    assert rows == list(range(1, 21))
    assert require_whole(tmp_path) == 20


def agents(how: str, *words: str) -> list[list[str]]:
    """The commands of two torchrun agents, which stand for two machines with one rank each."""
    port = free_port()
    run = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    run += ["--max-restarts", "1"]
    if how == "c10d":
        run += ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"]
        run += ["--rdzv-id", "two", "--local-addr", "127.0.0.1"]
        return [[*run, *words]] * 2
    run += ["--master-addr", "127.0.0.1", "--master-port", port]
    return [[*run, "--node-rank", node, *words] for node in "01"]


@pytest.mark.long
@pytest.mark.limit(900)
@pytest.mark.parametrize("leads", [True, False], ids=["rank 0 dies", "rank 1 dies"])
@pytest.mark.parametrize("how", ["c10d", "static"])
def test_torchrun_restarts_the_ranks_of_two_machines(
    how: str, leads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    commands = agents(how, "-m", "warpzone.cli.main", "train")
    both = [start(tmp_path, "--max-steps", "1280", command=command) for command in commands]
    wait_for_update(tmp_path, 5)
    ranks = [one for agent in both for one in psutil.Process(agent.pid).children()]
    (dying,) = [one for one in ranks if (one.environ()["RANK"] == "0") is leads]
    dying.kill()
    said = "".join(agent.communicate(timeout=600)[1] for agent in both)
    assert [agent.returncode for agent in both] == [0, 0], said
    assert said.count("resuming from") == 1
    rows = [row["update"] for row in read_rows(tmp_path / "one", "metrics.jsonl")]
    assert rows == list(range(1, 41))
    assert require_whole(tmp_path) == 40


#: Rank 1 dies once all have met. torchrun's store lives on; half of the time a restarted rank would
#: look for another one at the address that it had before.
DYING = """
import os, time
from torch.distributed.distributed_c10d import _get_default_store
from warpzone.config import TrainConfig
from warpzone.dist.launch import run_ranks
from warpzone.dist.place import find_place

config = TrainConfig(device="cpu", num_envs=4, groups=2, minibatch=16, run_name="one")
place = find_place(config)

def work(config, ranks):
    store = _get_default_store()
    if config.resume != "never":
        found = "apart" if not store.check(["left"]) else "where others met before"
        print(f"met again, {found}; resume={config.resume}", flush=True)
        return 0
    store.set("left", "by those before")
    time.sleep(60) if place.leads else os._exit(1)

raise SystemExit(run_ranks(place, config, work, print))
"""


def test_ranks_that_torchrun_restarts_meet_apart_from_the_dead(tmp_path: Path) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    run += ["--max-restarts", "1", str(tmp_path / "dying.py")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    # Other ranks than the first are silent.
    assert done.stdout.splitlines() == ["met again, apart; resume=auto"]


def test_ranks_of_two_machines_meet_apart_from_the_dead(tmp_path: Path) -> None:
    """The agent of rank 0 starts it again because the other one does, which is no restart that it
    counts."""
    (tmp_path / "dying.py").write_text(DYING)
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in agents("c10d", str(tmp_path / "dying.py"))
    ]
    said = [agent.communicate(timeout=PATIENCE) for agent in both]
    assert [agent.returncode for agent in both] == [0, 0], said
    assert "".join(out for out, _ in said).splitlines() == ["met again, apart; resume=auto"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--devices", "4096", "--num-envs", "8192"], "--devices 4096: there "),
        (["--devices", "3"], "4 lanes do not divide into 2 groups on each of 3 ranks"),
        (["--nodes", "2"], "--nodes 2: MASTER_ADDR, MASTER_PORT and NODE_RANK must be"),
        (["--devices", "0"], "--devices must be at least 1, and is 0"),
    ],
)
def test_refused(
    words: list[str], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from warpzone.cli.main import main
    from warpzone.eval.policy import cores

    if words[:2] == ["--devices", "2"] and cores() < 2:
        pytest.skip("one core")
    assert main(["train", *SMALL, "--runs-dir", str(tmp_path / "runs"), *words]) == 2
    said = capfd.readouterr().err.strip().splitlines()
    assert said[-1].startswith(f"warpzone train: {sentence}")
    assert not (tmp_path / "runs").exists()
