"""How long a checkpoint of a default run holds training up."""

import statistics
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from warpzone.config import TrainConfig  # noqa: E402
from warpzone.run.checkpoints import Checkpoints  # noqa: E402
from warpzone.train.loop import Run  # noqa: E402


def seconds_of_saves(folder: Path, count: int = 5) -> tuple[list[float], int]:
    """Of a run with the default network, lanes and pictures; rollouts are short, because no
    checkpoint holds them. Returns the seconds of each save, and the bytes of one."""
    config = TrainConfig(
        rollout_steps=4, minibatch=2048, epochs=1, runs_dir=str(folder), run_name="default"
    )
    run = Run(config)
    try:
        run.learner.update(run.driver.play().rollout, 0.0)
        seconds = []
        for update in range(1, count + 1):
            run.budget.global_update = update
            began = time.perf_counter()
            run.save()
            seconds.append(time.perf_counter() - began)
        newest = Checkpoints(run.folder.checkpoints).stems()[0]
        sidecar = Checkpoints(run.folder.checkpoints).open(newest).sidecar
        return seconds, sidecar.weights.bytes + sidecar.state.bytes
    finally:
        run.close()


@pytest.mark.perf
def test_a_default_checkpoint_blocks_for_less_than_a_second(tmp_path: Path) -> None:
    seconds, size = seconds_of_saves(tmp_path)
    assert size > 1 << 20
    assert statistics.median(seconds) < 1.0
