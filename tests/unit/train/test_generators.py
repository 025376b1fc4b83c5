"""The generators that belong to nobody go on after a resume where they were, whoever uses them."""

import random
from pathlib import Path

import numpy as np
import torch
from tiny_runs import tiny

from warpzone.run.resume import find_start
from warpzone.train.loop import Run


def drawn() -> tuple[float, float, float]:
    return random.random(), float(np.random.random()), float(torch.rand(()))


def test_global_generators_are_taken_up(tmp_path: Path) -> None:
    config = tiny(runs_dir=str(tmp_path), run_name="one", resume="auto")
    run = Run(config)
    try:
        random.seed(11)
        np.random.seed(12)
        torch.manual_seed(13)
        drawn()
        run.save("interrupt")
        expected = drawn()
    finally:
        run.close()
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    Run(config, start=find_start(config, lambda text: None)).close()
    assert drawn() == expected
