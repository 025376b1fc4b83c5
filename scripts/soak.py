"""Whether a long run leaks: trains in a process of its own and looks at its memory, open files and
threads every few seconds. Linux only.

    python scripts/soak.py --minutes 60 --out benchmarks/soak.json
    python scripts/soak.py --minutes 60 --give-back --out soak-held.json

The clock starts with the first update.

Memory is the anonymous memory of the process (its heaps and stacks; smaps_rollup): parts of
libraries, which the system loads and drops as it likes, are no leak. The resident set is there for
comparison and is not judged.

An update takes and returns tens of MiB, and a look lands anywhere in it. So the smallest of the
looks of two minutes stands for them: the floor. What a leak leaves behind stays in the floor.

The first third is the warm-up and does not count (20 minutes of 60): buffers fill, libraries are
loaded, and the first evaluations and checkpoints happen.

The growth is the median of the slopes between any two floors (Theil and Sen), so that a few odd
ones do not matter. Its interval of 95 % is Sen's, by the variance of Kendall's score, widened by
the likeness of neighbouring floors, because an allocator moves in steps that last.

    flat       the whole interval is below the target: growth as fast as that is ruled out.
    grows      the whole interval is at or above the target.
    undecided  the target is in the interval: a longer run would tell, a shorter one could not.

So noise never passes for "flat"; less than half an hour is always undecided.

Freed memory that the allocator keeps for later counts like memory that is held, as it does for
other processes on the machine. So that the two can be told apart, the run says itself what it has
in use (a thread of its process looks): bytes that are allocated and not freed (glibc's mallinfo2:
tensors, arrays, buffers), bytes that are freed and kept, and how many blocks Python's own allocator
has handed out (objects). A leak is growth of what is in use; where only the anonymous memory grows,
the heap is fragmented. With --give-back the allocator of the run keeps nothing, at some cost in
speed.
"""

import argparse
import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from warpzone.bench.machine import describe
from warpzone.run.files import write_text

WARMUP = 1 / 3
#: Seconds whose smallest look stands for them: a few updates at the least.
FLOOR = 120.0
#: Minutes from which on a slope says something.
CONCLUSIVE = 30.0
#: Seconds that a run may take to its first update.
PATIENCE = 600.0
#: Of the normal distribution: 95 % are within.
SIGMAS = 1.96
#: Growth in an hour that must be ruled out. 16 MiB fill 384 MiB in a day, about what the run has.
#: What is in use does not move with the allocator, so less of it is found: 2 MiB are 500 bytes for
#: each of an hour's 4,000 updates, 20,000 blocks are 5 objects.
TARGETS = {
    "anonymous_mib": 16.0,
    "in_use_mib": 2.0,
    "python_blocks": 20_000.0,
    "fds": 1.0,
    "threads": 1.0,
}
#: Not judged.
SHOWN = ("rss_mib", "kept_mib")
#: What the run says about itself, in the folder of its log.
INSIDE = "inside.json"
MIB = 2**20
#: glibc: every larger block is a mapping of its own, and the top of the heap is not kept.
GIVE_BACK = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_MMAP_MAX_": "1000000",
    "MALLOC_TRIM_THRESHOLD_": "65536",
}
#: Short updates, so that whatever an update leaks is multiplied, and everything that writes, often.
TRAINING = [
    *("--preset", "quick", "--num-envs", "16", "--rollout-steps", "64", "--minibatch", "512"),
    *("--max-steps", "1000000000", "--eval-interval", "100000", "--stop-at", "0"),
    *("--checkpoint-minutes", "1", "--enable-tensorboard", "--monitor-interval", "1"),
    *("--heartbeat-interval", "2", "--parquet-interval", "5", "--metrics-rotate-mb", "2"),
]

Sample = dict[str, float]


class MallInfo(ctypes.Structure):
    """struct mallinfo2 of malloc.h, sums over all arenas."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def in_use() -> Sample:
    """What this process has allocated and not freed; empty without glibc 2.33 or newer."""
    mallinfo = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo is None:
        return {}
    mallinfo.restype = MallInfo
    found = mallinfo()
    return {
        "in_use_mib": (found.uordblks + found.hblkhd) / MIB,
        "kept_mib": found.fordblks / MIB,
        "python_blocks": sys.getallocatedblocks(),
    }


def inside(path: Path, every: float, words: list[str]) -> int:
    """Trains, and says every few seconds what is in use."""
    from warpzone.cli.main import main as warpzone

    def look() -> None:
        fresh = path.with_suffix(".new")
        while True:
            fresh.write_text(json.dumps(in_use()))
            fresh.replace(path)
            time.sleep(every)

    threading.Thread(target=look, name="soak", daemon=True).start()
    return warpzone(["train", *words])


def sample(process: psutil.Process, began: float, said: Path) -> Sample:
    """One look at the process, and at what it said last."""
    memory = {}
    for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, size, *_ = line.split()
        memory[name] = int(size) / 1024
    with process.oneshot():
        return {
            "seconds": time.monotonic() - began,
            "anonymous_mib": memory["Anonymous:"],
            "rss_mib": memory["Rss:"],
            **json.loads(said.read_text()),
            "fds": process.num_fds(),
            "threads": process.num_threads(),
        }


def floors(samples: list[Sample], name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """The hours and the smallest values of all whole windows."""
    first = samples[0]["seconds"]
    windows: dict[int, list[Sample]] = {}
    for one in samples:
        windows.setdefault(int((one["seconds"] - first) / FLOOR), []).append(one)
    if len(windows) > 1 and samples[-1]["seconds"] - first < FLOOR * (max(windows) + 0.9):
        del windows[max(windows)]
    lowest = [min(window, key=lambda one: one[name]) for window in windows.values()]
    hours = np.array([one["seconds"] for one in lowest]) / 3600
    return hours, np.array([one[name] for one in lowest], dtype=float)


def growth(hours: NDArray[Any], values: NDArray[Any]) -> tuple[float, float, float]:
    """The slope by Theil and Sen, and the ends of its interval; without an end where there is too
    little to go by."""
    count = len(values)
    first, second = np.triu_indices(count, 1)
    if not len(first):
        return float("nan"), -float("inf"), float("inf")
    pairs = np.sort((values[second] - values[first]) / (hours[second] - hours[first]))
    slope = float(np.median(pairs))
    rest = values - slope * hours
    rest -= np.median(rest)
    likeness = float(rest[1:] @ rest[:-1] / (rest @ rest)) if rest.any() else 0.0
    likeness = min(max(likeness, 0.0), 0.9)
    variance = count * (count - 1) * (2 * count + 5) / 18 * (1 + likeness) / (1 - likeness)
    within = SIGMAS * variance**0.5
    low = math.floor((len(pairs) - within) / 2) - 1
    high = math.ceil((len(pairs) + within) / 2)
    return (
        slope,
        float(pairs[low]) if low >= 0 else -float("inf"),
        float(pairs[high]) if high < len(pairs) else float("inf"),
    )


def judge(low: float, high: float, target: float, minutes: float) -> str:
    """flat, grows or undecided."""
    if minutes < CONCLUSIVE or low < target <= high:
        return "undecided"
    return "flat" if high < target else "grows"


def slopes(samples: list[Sample], minutes: float) -> dict[str, Any]:
    """Growth in an hour of each quantity after the warm-up, with its first, last and largest
    floor, and its largest value."""
    late = [one for one in samples if one["seconds"] >= WARMUP * minutes * 60]
    result: dict[str, Any] = {}
    for name in (*TARGETS, *SHOWN):
        if name not in late[0]:
            continue
        hours, values = floors(late, name)
        slope, low, high = growth(hours, values)
        result[name] = {
            "floors": len(values),
            "first": float(values[0]),
            "last": float(values[-1]),
            "largest": float(values.max()),
            "peak": max(one[name] for one in late),
            "per_hour": _finite(slope),
            "interval_per_hour": [_finite(low), _finite(high)],
        }
        if name in TARGETS:
            result[name]["target_per_hour"] = TARGETS[name]
            result[name]["verdict"] = judge(low, high, TARGETS[name], minutes)
    return result


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until a file is there, the run has ended or patience has."""
    began = time.monotonic()
    while not path.exists() and process.poll() is None and time.monotonic() - began < PATIENCE:
        time.sleep(0.2)


def watch(
    process: subprocess.Popen[bytes], minutes: float, every: float, said: Path
) -> list[Sample]:
    """Samples until the time is over or the run ends by itself."""
    seen, began, samples = psutil.Process(process.pid), time.monotonic(), list[Sample]()
    while time.monotonic() - began < minutes * 60 and process.poll() is None:
        samples.append(sample(seen, began, said))
        time.sleep(every)
    return samples


def main() -> int:
    """0 if nothing is known to grow."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two looks")
    parser.add_argument("--give-back", action="store_true", help="keep no freed memory")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    parser.add_argument("--inside", type=Path, metavar="FILE", help=argparse.SUPPRESS)
    parser.add_argument("training", nargs="*", help="flags of `warpzone train` after --")
    args = parser.parse_args()
    if args.inside:
        return inside(args.inside, args.every, args.training)
    if args.dry_run:
        words = " ".join([*TRAINING, *args.training])
        print(f"would look every {args.every:g} s for {args.minutes:g} min at: train {words}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        flags = [*TRAINING, "--runs-dir", folder, "--run-name", "soak", *args.training]
        said = Path(folder) / INSIDE
        command = [sys.executable, __file__, "--inside", str(said), "--every", str(args.every)]
        settings = {"MARIO_ALLOW_CPU_AUTO": "1", **(GIVE_BACK if args.give_back else {})}
        log = Path(folder) / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*command, "--", *flags], stdout=file, stderr=file, env={**os.environ, **settings}
            )
            wait_for(Path(folder) / "soak" / "metrics.jsonl", process)
            samples = watch(process, args.minutes, args.every, said)
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
        "command": f"scripts/soak.py --minutes {args.minutes:g}"
        + (" --give-back" if args.give_back else ""),
        "training": [*TRAINING, *args.training],
        "minutes": args.minutes,
        "warmup_minutes": round(WARMUP * args.minutes, 1),
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
    return 1 if any(one.get("verdict") == "grows" for one in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
