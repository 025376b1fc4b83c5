"""The learner beside the slow one of `tests/oracle/reference_learner.py`."""

from __future__ import annotations

import pytest
import torch
from reference_learner import ReferenceLearner
from tiny_runs import CPU

from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.learn.learner import Learner
from warpzone.model.agent import Agent

#: Sums in another order and in float32, of weights that moved by the rate in each step.
TOLERANCE = 0.02
STATISTICS = {
    "loss_policy": "policy",
    "loss_value": "value",
    "loss_imitation": "imitation",
    "entropy": "entropy",
    "approx_kl": "kl",
    "clip_fraction": "clipped",
}


def compare(
    config: TrainConfig,
    agent: Agent,
    rollouts: list[Rollout],
    progress: list[float],
    *,
    behind: bool = False,
) -> None:
    """Some updates of both learners, compared after each one. behind: the rollouts count as those
    of older weights."""
    learner = Learner(config, agent, CPU)
    slow = ReferenceLearner(config, agent, learner.state_dict())
    moved = 0.0
    for index, (rollout, share) in enumerate(zip(rollouts, progress, strict=True)):
        for player in (agent, slow.agent):
            player.resample_noise(torch.Generator().manual_seed(index))
        row = learner.update(rollout, share, behind=behind)
        slow.update(rollout, share, behind=behind)
        assert row["learning_rate"] == pytest.approx(slow.rate, rel=1e-6)
        assert row["entropy_bonus"] == pytest.approx(slow.bonus, rel=1e-6)
        assert row["grad_norm"] == pytest.approx(slow.norm, rel=1e-3)
        for name, part in STATISTICS.items():
            expected = sum(getattr(losses, part) for losses in slow.seen) / len(slow.seen)
            assert row[name] == pytest.approx(expected, rel=1e-3, abs=1e-4), name
        if slow.replayed:
            for name in ("loss_policy", "loss_value", "approx_kl"):
                part = STATISTICS[name]
                expected = sum(getattr(losses, part) for losses in slow.replayed)
                expected /= len(slow.replayed)
                found = row[f"replay_{name}"]
                assert found == pytest.approx(expected, rel=1e-3, abs=1e-4), f"replay_{name}"
        moved += slow.rate
        close(dict(agent.state_dict()), dict(slow.agent.state_dict()), moved)
        average = learner.state_dict()["ema"]
        if average is not None:
            close(dict(average["averages"]), slow.average, moved)


def close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor], moved: float) -> None:
    assert found.keys() == expected.keys()
    for name, weight in expected.items():

        def named(text: str, name: str = name) -> str:
            return f"{name}: {text}"

        torch.testing.assert_close(
            found[name].double(),
            weight.double(),
            rtol=0,
            atol=TOLERANCE * moved + 1e-6,
            msg=named,
        )
