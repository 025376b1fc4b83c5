"""Whether a long run leaks: trains in a process of its own and looks at its memory, open files and
threads every few seconds.

    python scripts/soak.py --minutes 60 --out benchmarks/soak.json

The clock starts with the first update. A slope is the median of the slopes between any two samples
after the warm-up (the first third, in which buffers fill and the first evaluation and checkpoint
happen), so that the peaks of evaluations and checkpoints do not count. Memory is the resident set
of the process. Less than half an hour shows that the script works, and proves nothing.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from warpzone.bench.machine import describe
from warpzone.run.files import write_text

WARMUP = 1 / 3
#: Minutes from which on a slope says something.
CONCLUSIVE = 30.0
#: Seconds that a run may take to its first update.
PATIENCE = 600.0
MIB = 2**20
#: More than this in an hour is a leak and not noise.
TARGETS = {"rss_mib": 16.0, "fds": 1.0, "threads": 1.0}
#: Short updates, so that whatever an update leaks is multiplied, and everything that writes, often.
TRAINING = [
    *("--preset", "quick", "--num-envs", "16", "--rollout-steps", "64", "--minibatch", "512"),
    *("--max-steps", "1000000000", "--eval-interval", "100000", "--stop-at-clears", "0"),
    *("--checkpoint-minutes", "1", "--enable-tensorboard", "--monitor-interval", "1"),
    *("--heartbeat-interval", "2", "--parquet-interval", "5", "--metrics-rotate-mb", "2"),
]


def sample(process: psutil.Process, began: float) -> dict[str, float]:
    """One look at the process."""
    with process.oneshot():
        return {
            "seconds": time.monotonic() - began,
            "rss_mib": process.memory_info().rss / MIB,
            "fds": process.num_fds(),
            "threads": process.num_threads(),
        }


def slopes(samples: list[dict[str, float]], minutes: float) -> dict[str, Any]:
    """Growth in an hour of each quantity, with its first, last and largest value."""
    late = [one for one in samples if one["seconds"] >= WARMUP * minutes * 60]
    hours = np.array([one["seconds"] for one in late]) / 3600
    first, second = np.triu_indices(len(late), 1)
    result = {}
    for name, most in TARGETS.items():
        values = np.array([one[name] for one in late], dtype=float)
        slope = float(np.median((values[second] - values[first]) / (hours[second] - hours[first])))
        result[name] = {
            "first": float(values[0]),
            "last": float(values[-1]),
            "largest": float(values.max()),
            "per_hour": slope,
            "target_per_hour": most,
            "met": slope < most if minutes >= CONCLUSIVE else None,
        }
    return result


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until a file is there, the run has ended or patience has."""
    began = time.monotonic()
    while not path.exists() and process.poll() is None and time.monotonic() - began < PATIENCE:
        time.sleep(0.2)


def watch(process: subprocess.Popen[bytes], minutes: float, every: float) -> list[dict[str, float]]:
    """Samples until the time is over or the run ends by itself."""
    seen, began, samples = psutil.Process(process.pid), time.monotonic(), list[dict[str, float]]()
    while time.monotonic() - began < minutes * 60 and process.poll() is None:
        samples.append(sample(seen, began))
        time.sleep(every)
    return samples


def main() -> int:
    """0 if nothing is known to grow."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
    parser.add_argument("--out", type=Path)
    parser.add_argument("training", nargs="*", help="flags of `warpzone train` after --")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        flags = [*TRAINING, "--runs-dir", folder, "--run-name", "soak", *args.training]
        command = [sys.executable, "-m", "warpzone.cli.main", "train", *flags]
        log = Path(folder) / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=file, env={**os.environ, "MARIO_ALLOW_CPU_AUTO": "1"}
            )
            wait_for(Path(folder) / "soak" / "metrics.jsonl", process)
            samples = watch(process, args.minutes, args.every)
            if process.poll() is not None:
                print(f"soak: the run ended by itself:\n{log.read_text()[-2000:]}", file=sys.stderr)
                return 1
            process.send_signal(signal.SIGTERM)
            code = process.wait(timeout=600)
        rows = (Path(folder) / "soak" / "heartbeat.jsonl").read_text().splitlines()
        last = json.loads(rows[-1])
    found = slopes(samples, args.minutes)
    result = {
        "machine": describe(),
        "command": f"scripts/soak.py --minutes {args.minutes:g}",
        "training": [*TRAINING, *args.training],
        "minutes": args.minutes,
        "updates": last["update"],
        "global_step": last["global_step"],
        "exit_code": code,
        "last_phase": last["phase"],
        "growth": found,
        "samples": samples,
    }
    text = json.dumps(result, indent=1) + "\n"
    if args.out:
        write_text(args.out, text)
    print(json.dumps({key: value for key, value in result.items() if key != "samples"}, indent=2))
    return 1 if any(one["met"] is False for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
