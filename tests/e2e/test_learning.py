"""Training learns: two minutes of one core make an agent that gets much further than chance."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_runs import Recorder

from warpzone.algo.returns import gae, steps_of
from warpzone.collect.episodes import Episode
from warpzone.config import TrainConfig
from warpzone.data.types import Rollout
from warpzone.train.loop import Run

#: Beyond the fourth pipe of 1-1, just before the first pit. In this test 9.1 % of the episodes come
#: that far by chance and 28.6 % after training; without a value loss it is 20 %. What leaves no
#: trace in a run this short (a flipped sign of the entropy bonus, say) is noticed by the reference
#: learner, tests/property/test_learner.py.
FAR = 1000
RANDOM_AT_MOST = 0.15
TRAINED_AT_LEAST = 0.22
#: Of what follows, the values know 33 to 48 % in the last ten updates; -2 % without a value loss.
EXPLAINED_AT_LEAST = 0.2

#: About 100 seconds of one core; schedules are those of a run of this length.
STEPS = 256 * 1024


def small(folder: Path) -> TrainConfig:
    """A network and pictures as small as those of the preset `quick`, and a short run. Written out,
    so that the measured numbers stay those of this configuration when the preset changes."""
    return TrainConfig(
        stages="1-1",
        num_envs=64,
        groups=1,
        num_threads=1,
        rollout_steps=128,
        minibatch=1024,
        epochs=4,
        size=42,
        encoder_width=0.5,
        hidden_size=256,
        lr=4e-4,
        max_steps=STEPS,
        device="cpu",
        runs_dir=str(folder),
    )


def share_that_comes_far(episodes: list[Episode]) -> float:
    assert len(episodes) >= 100
    return float(np.mean([episode.furthest_x > FAR for episode in episodes[-500:]]))


def explained_variance(rollout: Rollout, config: TrainConfig) -> float:
    """How much of what followed the values knew: 1 is all of it, 0 is what a constant knows."""
    found = gae(steps_of(rollout), gamma=config.gamma, lam=config.gae_lambda)
    return float(1.0 - found.advantages.var() / found.targets.var())


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    """The budget is in steps; one thread makes them the same steps everywhere."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.limit(3600)
def test_training_beats_random_play(tmp_path: Path) -> None:
    run = Run(small(tmp_path))
    shown = Recorder()
    try:
        # A new network's policy is uniform but for a thousandth.
        for _ in range(8):
            rollout = run.collector.collect()
            assert float(torch.softmax(rollout.logits, -1).max()) < 0.16
        random_share = share_that_comes_far(run.collector.episodes.take())
        run.learn(shown)  # type: ignore[arg-type]
        explained = explained_variance(run.collector.collect(), run.config)
    finally:
        run.collector.close()
    trained_share = share_that_comes_far(list(run.collector.episodes.recent))
    assert run.global_step == STEPS
    entropy = np.mean([row["entropy"] for row in shown.rows[-8:]])
    print(
        f"came far: {random_share:.1%} by chance, {trained_share:.1%} trained; "
        f"values explain {explained:.0%}, entropy {entropy:.2f}"
    )
    assert random_share < RANDOM_AT_MOST
    assert trained_share > TRAINED_AT_LEAST
    assert explained > EXPLAINED_AT_LEAST
    first, last = shown.rows[1], shown.rows[-1]
    assert last["avg_return"] > 1.3 * first["avg_return"]
    assert last["entropy"] < 0.9 * first["entropy"]
    assert last["updates_skipped"] == 0.0
