"""V-trace, GAE and prioritised draws against TorchRL's.

TorchRL's sampler keeps priorities in compiled trees, which load only with the versions of PyTorch
that they were built for. Where they do not, the sampler is given the segment trees of Ray's RLlib
(those of OpenAI Baselines, in plain Python) instead: everything else is TorchRL's own."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_replay as slow
import torch
from torch import Tensor

from warpzone.algo.returns import Steps, gae, next_values, vtrace
from warpzone.data.replay.replay import Replay, ReplaySpec
from warpzone.data.replay.sampler import BetaSchedule
from warpzone.data.replay.storage import SegmentSpec

pytest.importorskip("torchrl", reason="torchrl is not installed (requirements.lock)")
from torchrl.data import LazyTensorStorage, PrioritizedSampler
from torchrl.data.replay_buffers.samplers import prioritized
from torchrl.objectives.value import functional

#: Its discounts are float32, whatever it is given.
CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}
TREES = ("SumSegmentTreeFp32", "MinSegmentTreeFp32", "SumSegmentTreeFp64", "MinSegmentTreeFp64")
CAPACITY, ALPHA, BETA, EPSILON = 16, 0.7, 0.6, 1e-3


# --- returns --------------------------------------------------------------------------------------
def steps(seed: int, ends: float) -> tuple[Steps, Tensor, Tensor]:
    """Random steps of 3 lanes, and the log-probabilities of the policy that learns and of the one
    that played."""
    random = torch.Generator().manual_seed(seed)

    def floats(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random, dtype=torch.float64)

    both = (11, 3)
    ended = torch.rand(both, generator=random) < ends
    cut = torch.rand(both, generator=random) < 0.5
    made = Steps(floats(*both), floats(*both), floats(3), floats(*both), ended & ~cut, ended & cut)
    return made, floats(*both) - 1.5, floats(*both) - 1.5


def theirs(made: Steps) -> dict[str, Tensor]:
    """The same steps as TorchRL wants them: [B, T, 1], with a next value for each step."""
    following = torch.cat([made.values[1:], made.last_value[None]])
    following = torch.where(made.truncated, made.final_value, following)
    columns = {
        "state_value": made.values,
        "next_state_value": following,
        "reward": made.rewards,
        "done": made.terminated | made.truncated,
        "terminated": made.terminated,
    }
    return {name: value.T[..., None] for name, value in columns.items()}


def ours(part: Tensor) -> Tensor:
    return part[..., 0].T


@pytest.mark.parametrize("ends", [0.0, 0.3, 0.8])
@pytest.mark.parametrize(("rho", "c"), [(1.0, 1.0), (0.5, 0.9), (3.0, 1.4)])
def test_vtrace(ends: float, rho: float, c: float) -> None:
    """With lambda = 1, the only one that TorchRL knows."""
    made, log_pi, log_mu = steps(3, ends)
    advantages, targets = functional.vtrace_advantage_estimate(
        0.94,
        log_pi.T[..., None],
        log_mu.T[..., None],
        rho_thresh=rho,
        c_thresh=c,
        **theirs(made),
    )
    found = vtrace(made, log_pi - log_mu, gamma=0.94, rho_bar=rho, c_bar=c)
    torch.testing.assert_close(found.targets, ours(targets), **CLOSE)
    torch.testing.assert_close(found.advantages, ours(advantages), **CLOSE)


@pytest.mark.parametrize("ends", [0.0, 0.3, 0.8])
def test_gae(ends: float) -> None:
    made, _, _ = steps(5, ends)
    advantages, targets = functional.generalized_advantage_estimate(0.94, 0.8, **theirs(made))
    found = gae(made, gamma=0.94, lam=0.8)
    torch.testing.assert_close(found.targets, ours(targets), **CLOSE)
    torch.testing.assert_close(found.advantages, ours(advantages), **CLOSE)
    assert next_values(made)[made.terminated].abs().sum() == 0.0


# --- prioritised draws ----------------------------------------------------------------------------
class PlainTree:
    """One of RLlib's trees with the methods of TorchRL's."""

    def __init__(self, made: Any) -> None:
        self.tree = made

    def query(self, first: int, end: int) -> float:
        return float(self.tree.reduce(first, end))

    def scan_lower_bound(self, masses: Any) -> Tensor:
        return torch.tensor([self.tree.find_prefixsum_idx(float(mass)) for mass in masses])

    def __getitem__(self, index: Tensor) -> Tensor:
        return torch.tensor([self.tree[int(one)] for one in index])

    def __setitem__(self, index: Tensor, values: Tensor) -> None:
        for one, value in zip(index.tolist(), values.expand(len(index)).tolist(), strict=True):
            self.tree[one] = value


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> Any:
    if prioritized.SumSegmentTreeFp64 is None:
        ray = importlib.util.find_spec("ray")
        if ray is None or ray.origin is None:
            pytest.skip("ray is not installed (extra: fleet), and TorchRL's trees do not load")
        file = Path(ray.origin).parent / "rllib" / "execution" / "segment_tree.py"
        spec = importlib.util.spec_from_file_location("segment_tree", file)
        assert spec is not None
        assert spec.loader is not None
        trees = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(trees)
        for name in TREES:
            kind = getattr(trees, name.removesuffix("Fp32").removesuffix("Fp64"))
            monkeypatch.setattr(
                prioritized, name, lambda capacity, kind=kind: PlainTree(kind(capacity))
            )
    return PrioritizedSampler(CAPACITY, ALPHA, BETA, eps=EPSILON, dtype=torch.float64)


def filled(on_device: bool) -> tuple[Replay, slow.ToyLanes]:
    """Twelve segments, of the 16 that there is room for."""
    segment = SegmentSpec(length=3, stack=2, picture=(3, 2), actions=4, fp16_scalars=False)
    spec = ReplaySpec(
        segment=segment,
        memory_bytes=CAPACITY * segment.bytes,
        alpha=ALPHA,
        beta=BetaSchedule(BETA, BETA),
        epsilon=EPSILON,
        device_sampler=on_device,
    )
    replay = Replay(spec, seed=5)
    toy = slow.ToyLanes(4, segment.stack, segment.actions, seed=0)
    replay.push(toy.rollout(9)[0])
    return replay, toy


@pytest.mark.parametrize("on_device", [False, True])
def test_prioritised_draws(sampler: Any, on_device: bool) -> None:
    """Priorities, importance weights, what new segments weigh, and how often each is drawn."""
    replay, toy = filled(on_device)
    storage = LazyTensorStorage(CAPACITY)
    storage.set(range(12), torch.arange(12.0))
    index = torch.arange(12)
    priorities = torch.rand(12, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 5
    sampler.extend(index)
    sampler.mark_update(index)
    sampler.update_priority(index, priorities)
    batch = replay.sample(400, 0.5)
    assert set(batch.slots.tolist()) == set(range(12))
    replay.update_priorities(batch, priorities[batch.slots])

    def weights() -> tuple[Tensor, Tensor]:
        count = torch.arange(replay.size)
        return replay.sampler.get(count).double(), sampler._sum_tree[count].double()

    torch.testing.assert_close(*weights(), rtol=1e-5, atol=0.0)

    rounds, draws = 40, 250
    counts = np.zeros((2, 12))
    np.random.seed(3)  # What their sampler draws from.
    for _ in range(rounds):
        mine = replay.sample(draws, 0.5)
        found, more = sampler.sample(storage, draws)
        counts[0] += np.bincount(mine.slots.numpy(), minlength=12)
        counts[1] += np.bincount(found.numpy(), minlength=12)
        # Theirs are over the largest of the buffer, ours over the largest of the sample.
        told = torch.zeros(12, dtype=torch.float64)
        told[found] = more["priority_weight"].double()
        both = mine.slots[told[mine.slots] > 0]
        scale = told[both] / mine.weights.double()[told[mine.slots] > 0]
        torch.testing.assert_close(scale, scale[0].expand_as(scale), rtol=1e-5, atol=0.0)
    shares = counts / counts.sum(1, keepdims=True)
    wanted = ((priorities + EPSILON) ** ALPHA).numpy()
    wanted /= wanted.sum()
    # Theirs are independent draws: 4.5 deviations. Ours are stratified, and closer.
    deviation = np.sqrt(wanted * (1 - wanted) / (rounds * draws))
    assert (np.abs(shares[1] - wanted) < 4.5 * deviation).all()
    assert (np.abs(shares[0] - wanted) < 2.0 * deviation).all()
    assert np.abs(np.roll(shares[0], 1) - wanted).max() > 20 * deviation.max()

    # What comes new is as likely as the likeliest so far.
    replay.push(toy.rollout(3)[0])
    storage.set(range(12, 16), torch.arange(4.0))
    sampler.extend(torch.arange(12, 16))
    sampler.mark_update(torch.arange(12, 16))
    torch.testing.assert_close(*weights(), rtol=1e-5, atol=0.0)
