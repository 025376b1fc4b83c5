"""`warpzone train --actors` as a user has it: here, on a cluster that loses a node, refused."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("torch")
pytest.importorskip("ray")

from warpzone.cli.main import main
from warpzone.dist import cluster
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.reader import read_rows

COMMAND = [sys.executable, "-m", "warpzone.cli.main", "train"]
#: Lanes that end often, and a checkpoint after every update.
SMALL = [
    *("--preset", "quick", "--device", "cpu", "--num-envs", "4", "--groups", "2"),
    *("--rollout-steps", "8", "--minibatch", "16", "--epochs", "1", "--hidden-size", "16"),
    *("--size", "36", "--encoder-width", "0.125", "--stagnation-limit", "3", "--algo", "vtrace"),
    *("--eval-interval", "0", "--checkpoint-interval", "4", "--heartbeat-interval", "0.2"),
    *("--monitor-interval", "0", "--wall-lanes", "2", "--run-name", "one"),
    *("--max-steps", "100000000", "--max-time", "60", "--rank-timeout", "200"),
]
#: Seconds in which a busy machine has started Ray and two actors, or ended them.
PATIENCE = 400.0


class Learner:
    """The command, and what is seen of it."""

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        self.run = folder / "one"
        self.said = folder / "said.txt"
        with self.said.open("w") as file:
            self.process = subprocess.Popen(
                [*COMMAND, *SMALL, "--runs-dir", str(folder), *words],
                stdout=subprocess.DEVNULL,
                stderr=file,
                env={**os.environ, **variables},
            )

    def rows(self, name: str = "metrics.jsonl") -> list[dict[str, Any]]:
        return list(read_rows(self.run, name)) if self.run.exists() else []

    def wait(self, rows: int, **wanted: float) -> dict[str, Any]:
        """The first row after so many that has what is wanted."""
        ends = time.monotonic() + PATIENCE
        while True:
            for row in self.rows()[rows:]:
                if all(row[name] == value for name, value in wanted.items()):
                    return row
            assert time.monotonic() < ends, self.said.read_text()
            assert self.process.poll() is None, self.said.read_text()
            time.sleep(0.2)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


@pytest.fixture
def short() -> Iterator[str]:
    """A folder for temporary files whose sockets have short names."""
    place = tempfile.mkdtemp(prefix="wz-")
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def learners() -> Iterator[list[Learner]]:
    """Those that a test has started; none outlives it."""
    started: list[Learner] = []
    yield started
    for learner in started:
        if learner.process.poll() is None:
            learner.process.kill()
            learner.process.wait()


@pytest.mark.limit(900)
def test_actors_on_this_machine(tmp_path: Path, short: str, learners: list[Learner]) -> None:
    learner = Learner(tmp_path, "--actors", "2", "--max-lag", "1", TMPDIR=short)
    learners.append(learner)
    row = learner.wait(5, actors_present=2)
    assert 0 <= row["lag_p50"] <= row["lag_max"] <= 1
    family = psutil.Process(learner.process.pid).children(recursive=True)
    assert sum("".join(one.cmdline()).startswith("ray::RemoteActor") for one in family) == 2
    addresses = {address.removeprefix("::ffff:") for one in family for address in listening(one)}
    assert addresses == {"127.0.0.1"}
    ends = time.monotonic() + PATIENCE
    while "lag_max" not in learner.rows("heartbeat.jsonl")[-1]:
        assert time.monotonic() < ends
        time.sleep(0.1)
    assert learner.end() == 128 + signal.SIGTERM
    said = learner.said.read_text()
    assert "one on cpu, 2 actors" in said
    assert "interrupted at step" in said
    # Nobody is left, and nothing beside the run's folder.
    _, alive = psutil.wait_procs(family, PATIENCE)
    assert not alive
    assert [name for name in os.listdir(short) if name.startswith("wz-ray")] == []
    checkpoints = Checkpoints(learner.run / "checkpoints")
    newest = checkpoints.open(checkpoints.stems()[0])
    newest.verify()
    assert newest.sidecar.global_update == learner.rows()[-1]["update"]
    assert "lanes" in newest.read_state()["collector"]


def listening(process: psutil.Process) -> set[str]:
    try:
        found = process.net_connections("tcp")
    except psutil.Error:
        return set()
    return {one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}


@pytest.mark.limit(900)
def test_a_node_is_killed_in_the_middle(tmp_path: Path, learners: list[Learner]) -> None:
    from ray.cluster_utils import Cluster

    os.environ.update(cluster.ENVIRONMENT)
    room: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 << 20}
    machines = Cluster(True, head_node_args={**room, "include_dashboard": False})
    try:
        lost = machines.add_node(**room)
        learner = Learner(tmp_path, "--actors", "2", "--ray", machines.address)
        learners.append(learner)
        learner.wait(5, actors_present=2)
        machines.remove_node(lost, allow_graceful=False)
        # The other goes on alone, until there is room again.
        row = learner.wait(0, actors_present=1, actors_lost=1)
        learner.wait(row["update"] + 20, actors_present=1)
        machines.add_node(**room)
        again = learner.wait(row["update"], actors_present=2)
        assert again["rollouts_lost"] <= again["actors_lost"] >= 1
        assert learner.end() == 128 + signal.SIGTERM
        rows = learner.rows()
        assert [row["update"] for row in rows] == list(range(1, len(rows) + 1))
        assert max(row["lag_max"] for row in rows) <= 2
        said = learner.said.read_text()
        assert "is lost (" in said
        assert machines.address not in said
    finally:
        machines.shutdown()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--actors", "2", "--algo", "ppo"],
            "--actors play with weights that are up to 2 ",
        ),
        (
            ["--actors", "2", "--devices", "2"],
            "--actors 2 play for one learner, and there are",
        ),
        (["--actors", "3"], "4 lanes do not divide into 2 groups on each of 3 actors"),
        (["--actors", "2", "--overlap-collect"], "--actors collect beside the learner already"),
        (["--actors", "2", "--auto-mem"], "--auto-mem changes sizes after a failure"),
        (["--actors", "-1"], "--actors must be at least 0, and is -1"),
        (["--max-lag", "-1"], "--max-lag must be at least 0, and is -1"),
        (["--actor-rollouts", "0"], "--actor-rollouts must be at least 1, and is 0"),
        (["--actor-gpus", "0.5"], "--actor-gpus is the share of a GPU that each of --actors has"),
        (["--actors", "2", "--actor-gpus", "2"], "--actor-gpus must be in 0..1, and is 2"),
        (["--ray", "auto"], "--ray is where --actors are: say how many"),
        (["--actors", "2", "--ray", "me:secret@host:1"], "--ray takes HOST:PORT, or auto"),
        (["--actors", "2", "--ray", "ray://host:10001"], "--ray takes HOST:PORT of a cluster that"),
    ],
)
def test_refused(
    words: list[str], sentence: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *SMALL, "--runs-dir", str(tmp_path / "runs"), *words]) == 2
    said = capfd.readouterr().err.strip().splitlines()
    assert said[-1].startswith(f"warpzone train: {sentence}")
    assert "secret" not in "".join(said)
    assert not (tmp_path / "runs").exists()


def test_without_a_gpu_for_each_actor(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_gpus_here", lambda: 1)
    words = [*SMALL, "--runs-dir", str(tmp_path / "runs"), "--actors", "2", "--actor-gpus", "0.6"]
    assert main(["train", *words]) == 2
    assert capfd.readouterr().err.strip().splitlines()[-1] == (
        "warpzone train: --actors 2 with --actor-gpus 0.6: this machine has 1 GPU, with room for 1."
    )
    assert not (tmp_path / "runs").exists()


def fail(tmp_path: Path, capfd: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that fails before it has written anything."""
    assert (
        main(["train", *SMALL, "--runs-dir", str(tmp_path / "runs"), "--actors", "2", *words]) == 1
    )
    assert not (tmp_path / "runs").exists()
    return capfd.readouterr().err.strip().splitlines()[-1]


def test_nobody_at_the_address(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = fail(tmp_path, capfd, "--ray", address)
    assert said == "warpzone train: no Ray cluster answers at the address of --ray within 10 s."


def test_somebody_else_at_the_address(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "GREETING", 2.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        said = fail(tmp_path, capfd, "--ray", f"127.0.0.1:{server.getsockname()[1]}")
    assert said == "warpzone train: what answers at the address of --ray is no Ray cluster."


def test_no_cluster_on_this_machine(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPZONE_RAY", "auto")
    said = fail(tmp_path, capfd)
    assert said.startswith("warpzone train: the Ray cluster of --ray does not take this machine")


def test_without_ray(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "ray" else there(name)
    )
    said = fail(tmp_path, capfd)
    assert (
        said == "warpzone train: actors need Ray; install it with: pip install 'warpzone[fleet]'."
    )
