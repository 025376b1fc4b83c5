"""How long an evaluation of everything takes: 32 stages x 31 start delays x 2 policies.

    python benchmarks/evaluation.py --rounds 3 --append benchmarks/evaluation.jsonl

The network is the default one, new, but for a bias to the right: it continues until something stops
it, as trained ones do. What an agent costs grows with how long it survives, so the steps are given
too.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from warpzone import rom
from warpzone.bench.machine import describe
from warpzone.config import TrainConfig
from warpzone.env.actions import action_table
from warpzone.eval.evaluate import evaluate
from warpzone.model.agent import Agent
from warpzone.model.spec import model_spec
from warpzone.rom import native


def main() -> None:
    """Measures, prints and keeps."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", default="all")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--append", type=Path)
    options = parser.parse_args()
    rounds = [measure(options.stages, options.device) for _ in range(options.rounds)]
    on_gpu = options.device == "cuda"
    result = {
        "command": " ".join(["benchmarks/evaluation.py", *_shaping(sys.argv[1:])]),
        "machine": describe(),
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
        **rounds[0],
        "seconds": median(found["seconds"] for found in rounds),
        "all_seconds": [round(found["seconds"], 1) for found in rounds],
    }
    print(json.dumps(result, indent=1))
    if options.append is not None:
        with options.append.open("a") as file:
            file.write(json.dumps(result) + "\n")


def measure(stages: str, device: str) -> dict[str, Any]:
    """One evaluation."""
    config = TrainConfig(stages=stages)
    torch.manual_seed(0)
    agent = Agent(model_spec(config, len(action_table(config.actions).masks))).to(device)
    with torch.no_grad():
        agent.heads.policy.bias[1:5] += 2.0
    image = rom.find()
    program = native.load(image)
    began = time.perf_counter()
    outcomes = evaluate(agent, config, image, program)
    return {
        "episodes": len(outcomes),
        "steps": sum(outcome.steps for outcome in outcomes),
        "seconds": time.perf_counter() - began,
    }


def _shaping(words: list[str]) -> list[str]:
    """What shaped the numbers; paths are left out."""
    return words[: words.index("--append")] if "--append" in words else words


if __name__ == "__main__":
    main()
