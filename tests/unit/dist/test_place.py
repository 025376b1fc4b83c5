"""Who started a process as a rank, and what it makes of that."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tiny_runs import tiny

from warpzone.config import ConfigError
from warpzone.dist.place import MEETING, Place, find_place, fitted, follows, require_devices

TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "x",
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "TORCHELASTIC_RESTART_COUNT": "0",
    "TORCHELASTIC_MAX_RESTARTS": "2",
}
SLURM = {
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_NUM_NODES": "2",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}


@pytest.mark.parametrize(
    ("config", "environ", "place"),
    [
        ({}, {}, None),
        ({}, {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}, None),
        ({}, {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}, None),
        ({}, TORCHRUN, Place("torchrun", 5, 8, 1, 4, 0, 2)),
        ({}, SLURM, Place("slurm", 5, 8, 1, 4)),
        ({"devices": 2}, {}, Place("fabric", 0, 2, 0, 2)),
        ({"devices": 2}, {"LOCAL_RANK": "1"}, Place("fabric", 1, 2, 1, 2)),
        (
            {"devices": 2, "nodes": 2},
            {"NODE_RANK": "1", "LOCAL_RANK": "1"},
            Place("fabric", 3, 4, 1, 2),
        ),
    ],
)
def test_the_variables_say_who_started_it(
    config: dict[str, int], environ: dict[str, str], place: Place | None
) -> None:
    assert find_place(tiny(num_envs=8, minibatch=64, **config), environ) == place


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, False),
        ({"LOCAL_RANK": "1"}, False),
        ({"LOCAL_RANK": "1", MEETING: "there"}, True),
        ({"LOCAL_RANK": "0", MEETING: "there"}, False),
        (TORCHRUN, True),
        ({**TORCHRUN, "RANK": "0"}, False),
        (SLURM, True),
        ({**SLURM, "SLURM_PROCID": "0"}, False),
        ({"NODE_RANK": "1"}, True),
        ({"NODE_RANK": "0", "LOCAL_RANK": "1"}, True),
        ({"NODE_RANK": "0", "LOCAL_RANK": "0"}, False),
    ],
)
def test_only_the_first_rank_speaks(environ: dict[str, str], expected: bool) -> None:
    assert follows(environ) is expected


def config(**changes: Any) -> Any:
    return tiny(num_envs=16, minibatch=64, max_steps=640, run_name="one", **changes)


def test_the_ranks_that_were_started_are_those_of_the_run() -> None:
    found = fitted(config(), Place("torchrun", 0, 8, 0, 4))
    assert (found.devices, found.nodes, found.ranks) == (4, 2, 8)
    assert fitted(config(devices=4, nodes=2), Place("slurm", 0, 8, 0, 4)) == found


def test_others_than_were_asked_for_are_refused() -> None:
    with pytest.raises(ConfigError, match="torchrun started 4 on each of 2; leave them out"):
        fitted(config(devices=2), Place("torchrun", 0, 8, 0, 4))


def test_lanes_must_divide_among_the_ranks_that_were_started() -> None:
    with pytest.raises(
        ConfigError, match="16 lanes do not divide into 2 groups on each of 3 ranks"
    ):
        fitted(config(), Place("torchrun", 0, 3, 0, 3))


def test_a_restarted_rank_resumes_the_run_that_has_its_name() -> None:
    place = Place("torchrun", 0, 2, 0, 2, restarts=1, most_restarts=3)
    assert fitted(config(), place).resume == "auto"
    assert fitted(config(resume="latest"), place).resume == "latest"
    assert fitted(config(), Place("torchrun", 0, 2, 0, 2, most_restarts=3)).resume == "never"
    with pytest.raises(ConfigError, match="by its --run-name"):
        fitted(config().replace(run_name=""), place)


def test_machines_must_know_each_other() -> None:
    several = config(nodes=2)
    cpu, place = torch.device("cpu"), Place("fabric", 0, 2, 0, 1)
    known = {"MASTER_ADDR": "x", "MASTER_PORT": "1", "NODE_RANK": "0"}
    require_devices(several, cpu, place, known)
    require_devices(several, cpu, Place("slurm", 0, 2, 0, 1), {})
    for name in known:
        others = {other: value for other, value in known.items() if other != name}
        with pytest.raises(ConfigError, match=f"--nodes 2: {name} must be set on each machine;"):
            require_devices(several, cpu, place, others)
    with pytest.raises(ConfigError, match="MASTER_ADDR, MASTER_PORT and NODE_RANK must be set"):
        require_devices(several, cpu, place, {})


@pytest.mark.parametrize(
    ("there", "sentence"),
    [(0, "there are 0 CUDA devices here"), (1, "there is 1 CUDA device here"), (2, "")],
)
def test_ranks_on_gpus_have_one_each(
    there: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: there)
    cuda, place = torch.device("cuda"), Place("fabric", 0, 2, 0, 2)
    if not sentence:
        require_devices(config(devices=2), cuda, place)
        return
    with pytest.raises(ConfigError, match=f"--devices 2: {sentence}$"):
        require_devices(config(devices=2), cuda, place)
