"""What PyTorch's wait policy costs and saves: short trainings with `OMP_WAIT_POLICY` PASSIVE and
ACTIVE in turns, on an otherwise idle machine and beside busy loops.

    taskset -c 0,1 python benchmarks/wait_policy.py --rounds 5 --busy 0,2 --json wait_policy.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

POLICIES = ("PASSIVE", "ACTIVE")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="runs of each policy (default 5)")
    parser.add_argument("--busy", default="0,2", help="numbers of busy loops (default 0,2)")
    parser.add_argument("--steps", type=int, default=49_152, help="steps of a run")
    parser.add_argument("--preset", default="quick")
    parser.add_argument("--json", type=Path, help="where the result is written, too")
    args = parser.parse_args()
    document = {
        "command": " ".join(sys.argv),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": os.getloadavg()[0],
        "preset": args.preset,
        "steps": args.steps,
        "cases": [case(int(loops), args) for loops in args.busy.split(",")],
    }
    text = json.dumps(document, indent=1)
    print(text)
    if args.json:
        args.json.write_text(text + "\n")
    return 0


def case(loops: int, args: argparse.Namespace) -> dict[str, Any]:
    """All rounds beside so many busy loops; the ratio is the median of the rounds' ratios."""
    rates: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    with busy(loops):
        for number in range(args.rounds):
            for policy in POLICIES if number % 2 else POLICIES[::-1]:
                rates[policy].append(rate(policy, args))
                print(f"{loops} loops, {policy}: {rates[policy][-1]:.0f}", file=sys.stderr)
    ratios = [p / a for p, a in zip(rates["PASSIVE"], rates["ACTIVE"], strict=True)]
    return {
        "busy_loops": loops,
        "steps_per_sec": {policy: [round(r) for r in found] for policy, found in rates.items()},
        "passive_over_active": {
            "median": round(statistics.median(ratios), 3),
            "least": round(min(ratios), 3),
            "most": round(max(ratios), 3),
        },
    }


def rate(policy: str, args: argparse.Namespace) -> float:
    """Steps/s of one run: the median of its updates but the first."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["train", "--preset", args.preset, "--device", "cpu", "--max-steps", args.steps]
        words += ["--eval-interval", 0, "--stop-at", 0, "--wall-lanes", 0, "--monitor-interval", 0]
        words += ["--runs-dir", folder, "--run-name", "run"]
        env = {**os.environ, "OMP_WAIT_POLICY": policy}
        program = [sys.executable, "-c", PROGRAM, *map(str, words)]
        subprocess.run(program, env=env, check=True, stderr=subprocess.DEVNULL, timeout=900)
        rows = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
    found = [float(json.loads(row)["env_steps_per_sec"]) for row in rows[1:]]
    return statistics.median(found)


#: Trains without the evaluation and the video at the end, which are not measured.
PROGRAM = """
import sys
from warpzone.cli import train
from warpzone.train import evaluator
evaluator.evaluate = lambda *_, **__: []
train._finish = lambda *_: None
from warpzone.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that do nothing, as fast as they can."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
