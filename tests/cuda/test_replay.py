"""Replay whose samples are drawn on the GPU, and augmentation beside actors that draw there.
`WARPZONE_TEST_DEVICE=cpu` tries the tests themselves."""

import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_replay as slow
import torch
from tiny_runs import learn, tiny

from warpzone.data.replay.sampler import ScanSampler, TreeSampler
from warpzone.train.loop import Run

DEVICE = os.environ.get("WARPZONE_TEST_DEVICE", "cuda")
pytestmark = pytest.mark.skipif(
    DEVICE == "cuda" and not torch.cuda.is_available(), reason="needs CUDA"
)
SIZES: dict[str, Any] = {
    "num_envs": 32, "rollout_steps": 16, "minibatch": 128, "device": DEVICE, "num_threads": 2,
    "eval_interval": 0,
}  # fmt: skip
PER: dict[str, Any] = {"algo": "vtrace", "per": True, "per_memory_gb": 0.05, "per_segments": 8}


@pytest.mark.parametrize("spread", [0.0, 1.0, 3.0])
def test_draws_follow_the_priorities(spread: float) -> None:
    """As tests/property/test_replay.py on the CPU: KL(drawn || priorities) of independent draws
    would be about 0.0013; a slot shifted by one gives > 0.5 at the wider spreads."""
    sampler = ScanSampler(300, 1, DEVICE)
    rng = np.random.default_rng(0)
    weights = np.exp(spread * rng.standard_normal(256)).astype(np.float32)
    sampler.set(torch.arange(256), torch.from_numpy(weights))
    counts = np.zeros(256, dtype=np.int64)
    for _ in range(100):
        slots, probability = sampler.sample(1000, 256)
        assert slots.device.type == probability.device.type == DEVICE
        counts += np.bincount(slots.cpu().numpy(), minlength=256)
        expected = torch.from_numpy(weights / weights.sum())[slots.cpu()]
        torch.testing.assert_close(probability.float().cpu(), expected, rtol=1e-4, atol=0.0)
    assert slow.kl_divergence(counts, weights.astype(np.float64)) < 0.0013
    if spread:
        assert slow.kl_divergence(np.roll(counts, 1), weights.astype(np.float64)) > 0.5


def test_both_samplers_draw_alike() -> None:
    """KL between what tree and scan draw, in large buffers and from the same priorities."""
    size, count = 4096, 2000
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(size, generator=generator) + 0.01
    drawn = []
    for sampler in (TreeSampler(size, 5), ScanSampler(size, 6, DEVICE)):
        sampler.set(torch.arange(size), weights)
        counts = np.zeros(size, dtype=np.int64)
        for _ in range(100):
            counts += np.bincount(sampler.sample(count, size)[0].cpu().numpy(), minlength=size)
        drawn.append(counts)
    assert slow.kl_divergence(drawn[1], drawn[0].astype(np.float64) + 1e-9) < 0.02


@pytest.mark.parametrize("overlap", [False, True], ids=["serial", "overlap"])
def test_a_run_draws_on_the_device(tmp_path: Path, overlap: bool) -> None:
    changes = {**SIZES, **PER, "per_gpu_sample": True, "overlap_collect": overlap}
    run, shown = learn(tmp_path, **changes, max_steps=512 * 8, per_interval_max=2)
    assert run.learner.replaying is not None
    sampler = run.learner.replaying.replay.sampler
    assert isinstance(sampler, ScanSampler)
    assert sampler.device.type == DEVICE
    last = shown.rows[-1]
    assert last["replay_gpu_sample"] == 1
    assert last["replay_sample_total"] >= 4
    assert math.isfinite(last["replay_loss_value"])
    assert last["replay_sample_search_ms"] > 0


@pytest.mark.parametrize("graphs", [True, False], ids=["recorded", "plain"])
def test_augmentation_leaves_the_generator_of_the_actors_alone(
    tmp_path: Path, graphs: bool
) -> None:
    changes = {**SIZES, "augment_shift": 2, "cuda_graphs": graphs, "max_steps": 4096}
    config = tiny(**changes, runs_dir=str(tmp_path))
    run = Run(config)
    state = torch.cuda.get_rng_state if DEVICE == "cuda" else torch.get_rng_state
    try:
        rollout = run.collector.collect()
        before = state()
        weights = []
        for _ in range(2):
            run.learner.update(rollout, 0.0)
            weights.append(json.dumps([part.tolist() for part in run.agent.heads.parameters()]))
        assert torch.equal(state(), before)
        assert weights[0] != weights[1]
    finally:
        run.close()
