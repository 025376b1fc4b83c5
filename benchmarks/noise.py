"""Parameter noise in the heads, and in the encoder's linear layer too, next to none:

    python benchmarks/noise.py --out benchmarks/noise.jsonl

The second variant is not part of the product; it is made here, by replacing that layer. Runs have
the same steps, one after another. Runs that the file already holds are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

VARIANTS = ("none", "heads", "encoder")
SHOWN = ("env_mean_x_pos", "clear_rate", "avg_return", "entropy")
#: Rows between two points of a curve.
EVERY = 4


def main() -> None:
    """Runs what is missing, then prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/noise.jsonl"))
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--one", choices=VARIANTS, help=argparse.SUPPRESS)
    options, flags = parser.parse_known_args()
    if options.one:
        sys.exit(train(options.one, flags))
    runs = read(options.out)
    done = {(run["variant"], run["seed"], run["steps"]) for run in runs}
    for seed in map(int, options.seeds.split(",")):
        for variant in VARIANTS:
            if (variant, seed, options.steps) not in done:
                run = {"variant": variant, "seed": seed, "steps": options.steps}
                run |= measure(variant, seed, options.steps)
                with options.out.open("a") as file:
                    file.write(json.dumps(run) + "\n")
                runs.append(run)
                print(variant, seed, run["last"], file=sys.stderr, flush=True)
    print("| noise in | seed | mean x | clear rate | argmax of 31 | CPU seconds |")
    print("|---|---|---|---|---|---|")
    for run in sorted(runs, key=lambda run: (VARIANTS.index(run["variant"]), run["seed"])):
        last = run["last"]
        print(
            f"| {run['variant']} | {run['seed']} | {last['env_mean_x_pos']:.0f} | "
            f"{last['clear_rate']:.3f} | {last['argmax']} | {run['cpu_seconds']:.0f} |"
        )


def measure(variant: str, seed: int, steps: int) -> dict[str, Any]:
    """One run in a process of its own: its curve, how it ended, and what it cost."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, "--one", variant, "--preset", "quick"]
        words += ["--max-steps", str(steps), "--seed", str(seed), "--num-threads", "1"]
        words += ["--eval-interval", "0", "--stop-at-clears", "0"]
        words += ["--runs-dir", folder, "--run-name", "run"]
        before = time.perf_counter(), os.times().children_user
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run(
            words, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        after = time.perf_counter(), os.times().children_user
        rows = read(Path(folder) / "run" / "metrics.jsonl")
        evals = read(Path(folder) / "run" / "evals.jsonl")
    last = {name: round(rows[-1][name], 4) for name in SHOWN}
    for policy in ("argmax", "sampled"):
        last[policy] = sum(row["cleared"] for row in evals if row["policy"] == policy)
    return {
        "seconds": round(after[0] - before[0], 1),
        "cpu_seconds": round(after[1] - before[1], 1),
        "last": last,
        "fields": ["global_step", *SHOWN],
        "curve": [
            [row["global_step"], *(round(row[name] or 0.0, 4) for name in SHOWN)]
            for row in rows[EVERY - 1 :: EVERY]
        ],
    }


def train(variant: str, flags: list[str]) -> int:
    """`warpzone train`, with noise where the variant has it."""
    from warpzone.cli.main import main as warpzone

    if variant == "encoder":
        _noise_in_the_encoder()
    return warpzone(["train", *flags, *(["--noisy"] if variant != "none" else [])])


def _noise_in_the_encoder() -> None:
    from warpzone.model.encoder import NatureEncoder
    from warpzone.model.heads import NoisyLinear
    from warpzone.model.spec import ModelSpec

    plain = NatureEncoder.__init__

    def noisy(self: NatureEncoder, spec: ModelSpec) -> None:
        plain(self, spec)
        made = self.linear
        self.linear = NoisyLinear(made.in_features, made.out_features, spec.noisy_sigma)
        self.linear.weight, self.linear.bias = made.weight, made.bias

    NatureEncoder.__init__ = noisy  # type: ignore[method-assign]


def read(path: Path) -> list[dict[str, Any]]:
    """All rows of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


if __name__ == "__main__":
    main()
