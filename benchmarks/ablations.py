"""Trains variants of one preset for equal steps and says how far each one got:

    python benchmarks/ablations.py --out benchmarks/ablations_quick.jsonl
    python benchmarks/ablations.py --preset fast-1-1 --steps 2000000 --jobs 4 --threads 3 --out …
    python benchmarks/ablations.py --preset all --stages 1-2..1-4 --steps 4000000 --jobs 6 --out …

Each run is a process of its own, `--jobs` of them at a time, so its seconds say little. Runs that
the file already holds are not made again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

#: Flags on top of each preset's.
VARIANTS = {
    "quick": {
        "ppo": "",
        "vtrace": "--algo vtrace --epochs 1",
        "a2c": "--algo a2c --epochs 1",
        "gru": "--memory gru",
        "gtrxl": "--memory gtrxl",
        "vtrace-per": "--algo vtrace --epochs 1 --per --per-memory-gb 1",
        "overlap": "--overlap-collect",
        "impala": "--encoder impala",
    },
    "fast-1-1": {
        "ppo": "--epochs 4",
        "vtrace": "--algo vtrace --epochs 1 --minibatch 2048 --lr 6e-4",
        "a2c": "--algo a2c --epochs 1 --minibatch 8192 --lr 6e-4",
        "gru": "--epochs 4 --memory gru",
        "gtrxl": "--epochs 4 --memory gtrxl",
        "vtrace-per": "--algo vtrace --epochs 1 --minibatch 2048 --lr 6e-4 --per --per-memory-gb 4",
        "overlap": "--epochs 4 --overlap-collect",
        "impala": "--epochs 4 --encoder impala",
    },
    # One network for a few stages: `--stages 1-2..1-4`.
    "all": {
        name: f"--num-envs 512 --minibatch 4096 {flags}"
        for name, flags in {
            "all": "",
            "discount 0.9": "--gamma 0.9 --reward-distance-weight 0.1 --reward-step -0.04 "
            "--reward-flag 5 --reward-death -2.5",
            "discount 0.97": "--gamma 0.97 --reward-distance-weight 0.03 --reward-step -0.012 "
            "--reward-flag 2 --reward-death -1",
            "no curriculum": "--curriculum none",
            "no archive": "--archive-share 0 --archive-explore 0 --search-steps 0",
            "no exploration": "--archive-explore 0",
            "no search": "--search-steps 0",
            "no memory": "--memory none",
            "impala": "--encoder impala --encoder-width 1",
            "augmented": "--augment-shift 4 --augment-brightness 0.1",
            "noisy": "--noisy",
            "adaptive": "--adaptive",
            "entropy kept": "--entropy-final 0.01",
        }.items()
    },
}
CURVE = ("env_mean_x_pos", "clear_rate", "avg_return", "entropy")
EVERY = 4


def main() -> None:
    """Runs what is missing, then prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--preset", choices=VARIANTS, default="quick")
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--stages", default="1-1,1-2")
    parser.add_argument("--seeds", default="1,2")
    parser.add_argument("--variants", help="all of the preset's by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--threads", type=int, default=1, help="engine threads of each run")
    options = parser.parse_args()
    variants = VARIANTS[options.preset]
    chosen = options.variants.split(",") if options.variants else list(variants)
    done = {key_of(run) for run in read(options.out)}
    wanted = itertools.product(options.seeds.split(","), chosen, options.stages.split(","))
    lock = Lock()

    def one(job: tuple[str, str, str]) -> None:
        seed, variant, stage = job
        if (variant, stage, int(seed), options.steps) in done:
            return
        flags = ["--preset", options.preset, "--max-steps", str(options.steps), "--seed", seed]
        flags += ["--stages", stage, "--num-threads", str(options.threads)]
        flags += ["--eval-interval", "0", "--stop-at-clears", "0", *variants[variant].split()]
        about = {"variant": variant, "stage": stage, "seed": int(seed), "steps": options.steps}
        run = {**about, **train(flags)}
        with lock, options.out.open("a") as file:
            file.write(json.dumps(run) + "\n")
        print(f"{variant} {stage} seed {seed}: {run['last']}", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, wanted))
    print(table(read(options.out), list(variants)))


def key_of(run: dict[str, Any]) -> tuple[str, str, int, int]:
    """What makes a run another one."""
    return run["variant"], run["stage"], run["seed"], run["steps"]


def read(path: Path) -> list[dict[str, Any]]:
    """All runs of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def train(flags: list[str]) -> dict[str, Any]:
    """One run: its curve, and how it ended."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "warpzone.cli.main", "train", *flags]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MARIO_ALLOW_CPU_AUTO": "1"}
        log = Path(folder) / "log"
        with log.open("w") as file:
            code = subprocess.call(
                [*command, "--runs-dir", folder, "--run-name", "run"],
                stdout=file, stderr=subprocess.STDOUT, env=environment,
            )  # fmt: skip
        if code:
            raise SystemExit(f"{shlex.join(command)} ended with {code}:\n{log.read_text()}")
        rows = read(Path(folder) / "run" / "metrics.jsonl")
        evals = read(Path(folder) / "run" / "evals.jsonl")
    clears = {
        policy: sum(row["cleared"] for row in evals if row["policy"] == policy)
        for policy in ("argmax", "sampled")
    }
    curve = [[row["global_step"], *(round(row[name], 4) for name in CURVE)] for row in rows]
    last = {name: round(rows[-1][name], 4) for name in CURVE} | clears
    return {
        "flags": flags, "seconds": round(rows[-1]["seconds"], 1), "last": last,
        "fields": ["global_step", *CURVE], "curve": curve[EVERY - 1 :: EVERY],
    }  # fmt: skip


def table(runs: list[dict[str, Any]], variants: list[str]) -> str:
    """Mean furthest x of the last episodes, the share that reached the flag, and argmax clears."""
    columns = sorted({(run["stage"], run["seed"]) for run in runs})
    head = ["variant", *(f"{stage}, seed {seed}" for stage, seed in columns), "median ms/step"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for variant in variants:
        cells = {(run["stage"], run["seed"]): run for run in runs if run["variant"] == variant}
        if not cells:
            continue
        row = [cell(cells.get(column)) for column in columns]
        pace = statistics.median(1000 * run["seconds"] / run["steps"] for run in cells.values())
        lines.append("| " + " | ".join([variant, *row, f"{pace:.2f}"]) + " |")
    return "\n".join(lines)


def cell(run: dict[str, Any] | None) -> str:
    """A run in a word."""
    if run is None:
        return ""
    last = run["last"]
    share = f" ({100 * last['clear_rate']:.1f} %)" if last["clear_rate"] else ""
    return f"{last['env_mean_x_pos']:,.0f}{share}"


if __name__ == "__main__":
    main()
