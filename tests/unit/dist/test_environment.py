"""What Lightning is told of ranks, and where those of a SLURM step meet."""

from __future__ import annotations

import os
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest

pytest.importorskip("lightning")

from warpzone.dist.environment import environment_of, step_address, step_port
from warpzone.dist.folder import meeting_folder, step_folder, wait_for
from warpzone.dist.place import Place

AT_ONCE = timedelta(0)
TASKS = [Place("slurm", rank, 2, rank, 2) for rank in range(2)]


@pytest.mark.parametrize("job", ["bash", "interactive", "train"])
def test_a_task_is_what_slurm_says_whatever_the_job_is_called(
    job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_NAME", job)
    # Of the job, not of the step; and no SLURM_NTASKS_PER_NODE, which `--ntasks` does not set.
    monkeypatch.setenv("SLURM_NTASKS", "8")
    monkeypatch.setenv("SLURM_NODEID", "1")
    found = environment_of(Place("slurm", 3, 4, 1, 2))
    assert found.creates_processes_externally
    assert (found.global_rank(), found.world_size()) == (3, 4)
    assert (found.local_rank(), found.node_rank()) == (1, 1)


def test_ranks_are_started_in_a_batch_script_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables of a job without srun do not make its one process a task."""
    monkeypatch.setenv("SLURM_NTASKS", "2")
    monkeypatch.setenv("SLURM_JOB_NAME", "train")
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert not environment_of(Place("fabric", 0, 2, 0, 2)).creates_processes_externally


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("gpu3", "gpu3"),
        ("gpu3,gpu4", "gpu3"),
        ("gpu[3-5]", "gpu3"),
        ("gpu[03,7]", "gpu03"),
        ("gpu[7],cpu1", "gpu7"),
        ("cpu1,gpu[3-5]", "cpu1"),
        ("rack-1-gpu[3-5,9]-a,cpu1", "rack-1-gpu3-a"),
    ],
)
def test_rank_0_is_on_the_first_machine(nodes: str, first: str) -> None:
    assert step_address({"SLURM_STEP_NODELIST": nodes, "SLURM_JOB_NODELIST": "others"}) == first
    assert step_address({"SLURM_NODELIST": nodes}) == first
    assert step_address({"SLURM_NODELIST": nodes, "MASTER_ADDR": "mine"}) == "mine"


def test_steps_of_a_job_have_ports_of_their_own() -> None:
    ports = {step_port({"SLURM_JOB_ID": "123456", "SLURM_STEP_ID": str(step)}) for step in range(3)}
    assert len(ports) == 3
    assert all(1024 < port < 32768 for port in ports)
    assert step_port({"SLURM_JOB_ID": "1", "MASTER_PORT": "29500"}) == 29500


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the tasks of this step meet."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    monkeypatch.setenv("SLURM_STEP_ID", "3")
    return step_folder()


def test_tasks_of_one_machine_meet_in_a_private_folder(step: Path) -> None:
    assert "-12-3-" in step.name
    with meeting_folder(TASKS[0], AT_ONCE) as made:
        assert made == step
        assert step.stat().st_mode & 0o777 == 0o700
        with meeting_folder(TASKS[1], AT_ONCE) as found:
            assert found == step
        assert step.is_dir()
    assert not step.exists()


def test_a_step_that_is_started_again_meets_elsewhere(step: Path) -> None:
    environ = {"SLURM_JOB_ID": "12", "SLURM_STEP_ID": "3"}
    assert step_folder(environ) == step
    assert step_folder({**environ, "SLURM_RESTART_COUNT": "1"}) != step


def test_a_folder_of_somebody_else_is_refused(step: Path) -> None:
    with pytest.raises(OSError, match=r"rank 0 has not made .* in 0 s; .* same TMPDIR\.$"):
        wait_for(step, AT_ONCE)
    step.mkdir(mode=0o700)
    os.chmod(step, 0o755)
    with pytest.raises(OSError, match="which is not theirs: remove it"):
        wait_for(step, AT_ONCE)
    with (
        pytest.raises(OSError, match="which is there already: remove it"),
        meeting_folder(TASKS[0], AT_ONCE),
    ):
        pass
    # What it did not make it does not remove.
    assert step.is_dir()


@pytest.mark.parametrize("place", [Place("slurm", 0, 4, 0, 2), Place("torchrun", 0, 2, 0, 2)])
def test_others_meet_in_no_folder(place: Place) -> None:
    with meeting_folder(place, AT_ONCE) as folder:
        assert folder is None
