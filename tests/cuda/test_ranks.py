"""One rank in a group of its own, which on a GPU is NCCL's, around recorded CUDA graphs.
`WARPZONE_TEST_DEVICE=cpu` tries the tests themselves, with gloo."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tiny_runs import Recorder, tiny
from torch._C._distributed_c10d import HashStore

from warpzone.collect.ranks import ALONE, Ranks
from warpzone.dist.group import GroupRanks
from warpzone.train.loop import Run

DEVICE = os.environ.get("WARPZONE_TEST_DEVICE", "cuda")
pytestmark = pytest.mark.skipif(
    DEVICE == "cuda" and not torch.cuda.is_available(), reason="needs CUDA"
)
SIZES: dict[str, Any] = {
    "num_envs": 32, "rollout_steps": 16, "minibatch": 128, "encoder_width": 0.5, "hidden_size": 64,
    "device": DEVICE, "num_threads": 2, "eval_interval": 0, "amp": False, "max_steps": 2048,
}  # fmt: skip
UPDATES = 4
VARIANTS: dict[str, dict[str, Any]] = {
    "ppo": {"epochs": 2},
    "vtrace": {"algo": "vtrace"},
    "gru": {"memory": "gru"},
}


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[GroupRanks]:
    for name in ("GLOO", "NCCL"):
        monkeypatch.setenv(f"{name}_SOCKET_IFNAME", "lo")
    backend = "nccl" if DEVICE == "cuda" else "gloo"
    timeout = timedelta(seconds=60)
    dist.init_process_group(backend, store=HashStore(), rank=0, world_size=1, timeout=timeout)
    yield GroupRanks(60.0, 1)
    dist.destroy_process_group()


def learned(folder: Path, ranks: Ranks, changes: dict[str, Any]) -> tuple[Run, Recorder]:
    name = "grouped" if ranks.grouped else "plain"
    config = tiny(**SIZES, **changes, runs_dir=str(folder), run_name=name)
    run = Run(config, ranks=ranks)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    shown = Recorder()
    try:
        run.learn(shown)  # type: ignore[arg-type]
    finally:
        run.close()
    return run, shown


@pytest.mark.parametrize("graphs", [True, False], ids=["recorded", "plain"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_one_rank_learns_what_a_plain_run_learns(
    tmp_path: Path, group: GroupRanks, variant: str, graphs: bool
) -> None:
    changes = {**VARIANTS[variant], "cuda_graphs": graphs}
    (plain, alone), (grouped, shown) = (
        learned(tmp_path, ranks, changes) for ranks in (ALONE, group)
    )
    assert grouped.global_update == plain.global_update == UPDATES
    recorded = {name for _, name in grouped.learner._steps._recorded}
    steps = {"survey", "differentiate", "apply"}
    assert recorded == (steps if graphs and DEVICE == "cuda" else set())
    assert all(0 < row["communication_time_share"] < 1 for row in shown.rows)
    for first, second in zip(alone.rows, shown.rows, strict=True):
        assert first["loss_total"] == pytest.approx(second["loss_total"], rel=1e-3, abs=1e-4)
    pairs = zip(plain.agent.parameters(), grouped.agent.parameters(), strict=True)
    for one, other in pairs:
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-3)
