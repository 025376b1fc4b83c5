"""The native engine under stress: made and closed thousands of times, in all sizes, on any number
of threads, in forked and spawned processes, and played for a long time with random resets."""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import multiprocessing
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from warpzone.bench.machine import describe
from warpzone.env.vector import MarioVectorEnv
from warpzone.env.walker import right_biased

OUT = Path("benchmarks") / "native_stability.json"
MOST_LANES = 4096
MOST_ERRORS = 10
#: What the engine raises when something in it goes wrong.
FAILURES = (RuntimeError, ValueError, AssertionError, MemoryError)
#: MiB that memory may grow by between the first tenth of a part and its end.
FLAT = 8.0


def rss_mb() -> float:
    """Memory of this process, as the system counts it; its peak where only that is known."""
    counts = Path("/proc/self/statm")
    if counts.exists():
        return int(counts.read_text().split()[1]) * resource.getpagesize() / 2**20
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def slope(times: Sequence[float], values: Sequence[float]) -> float:
    """The straight line through the points, in units for each unit of time."""
    if len(times) < 2:
        return 0.0
    return float(np.polyfit(np.asarray(times), np.asarray(values), 1)[0])


def digest(lanes: int, threads: int, steps: int = 12) -> str:
    """What some lanes play, as a hash; the same for any number of threads and in any process."""
    env = MarioVectorEnv(lanes, num_threads=threads, stages="all", start_delay=(0, 30))
    rng = np.random.default_rng(1)
    found = hashlib.sha256()
    obs, _ = env.reset(seed=1)
    found.update(obs.tobytes())
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(right_biased(rng, lanes))
        for array in (obs, reward, terminated, truncated):
            found.update(array.tobytes())
    found.update(env.rams().tobytes())
    env.close()
    return found.hexdigest()


def cycles(count: int) -> dict[str, Any]:
    """Construct, reset, step, close."""
    rng = np.random.default_rng(0)
    memory, at = [], []
    errors: list[str] = []
    began = time.monotonic()
    for cycle in range(count):
        lanes, workers = int(rng.integers(1, 9)), int(rng.integers(1, 5))
        stage = f"{rng.integers(1, 9)}-{rng.integers(1, 5)}"
        try:
            _cycle(lanes, workers, stage, cycle, rng)
        except FAILURES as error:
            errors.append(f"cycle {cycle}: {error}")
        if cycle % max(1, count // 200) == 0:
            memory.append(rss_mb())
            at.append(float(cycle))
    # All start states and caches exist after the first tenth.
    late = len(at) // 10
    return {
        "cycles": count,
        "failures": len(errors),
        "errors": errors[:MOST_ERRORS],
        "seconds": round(time.monotonic() - began, 1),
        "rss_mb_first": round(memory[late], 1),
        "rss_mb_last": round(memory[-1], 1),
        "rss_kb_per_1000_cycles": round(slope(at[late:], memory[late:]) * 1024 * 1000, 1),
    }


def _cycle(lanes: int, workers: int, stage: str, seed: int, rng: np.random.Generator) -> None:
    env = MarioVectorEnv(lanes, num_threads=workers, stages=stage, size=42)
    try:
        obs, _ = env.reset(seed=seed)
        if not obs.any():
            raise AssertionError(f"{stage} shows nothing")
        env.step(right_biased(rng, lanes))
    finally:
        env.close()


def sizes(most: int) -> list[dict[str, Any]]:
    """Every power of two of lanes, and odd numbers beside them."""
    powers = [2**power for power in range(most.bit_length()) if 2**power <= most]
    rows = []
    for lanes in sorted({*powers, *(power - 1 for power in powers if power > 2), most}):
        began = time.monotonic()
        found = digest(lanes, 2, steps=4)
        seconds = round(time.monotonic() - began, 2)
        rows.append({"lanes": lanes, "seconds": seconds, "digest": found[:12]})
    return rows


def threads(most: int) -> dict[str, Any]:
    """The same play on every number of threads."""
    digests = {count: digest(64, count) for count in range(1, most + 1)}
    return {"thread_counts": most, "same": len(set(digests.values())) == 1}


def processes() -> dict[str, Any]:
    """The same play in children of every kind, while the parent has lanes and threads too."""
    parent = MarioVectorEnv(4, num_threads=2)
    parent.reset(seed=0)
    expected = digest(8, 2)
    same = {}
    for method in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            same[method] = set(pool.starmap(digest, [(8, 2)] * 4)) == {expected}
    parent.step(np.zeros(4, np.int64))
    parent.close()
    return same


def mixed_run(minutes: float, lanes: int, say: Callable[[str], None]) -> dict[str, Any]:
    """All stages, random resets, saves, loads and clones; memory is watched."""
    rng = np.random.default_rng(2)
    env = MarioVectorEnv(lanes, stages="all", start_delay=(0, 30), autoreset_mode="same_step")
    env.reset(seed=3)
    began = last = time.monotonic()
    at, memory = [], []
    steps = resets = episodes = 0
    deepest = 0
    errors: list[str] = []
    while time.monotonic() - began < minutes * 60:
        try:
            _, _, terminated, truncated, infos = env.step(right_biased(rng, lanes))
            resets += _disturb(env, rng)
        except FAILURES as error:
            errors.append(f"after {steps} steps: {error}")
            env.reset(seed=len(errors))
            continue
        steps += lanes
        episodes += int((terminated | truncated).sum())
        deepest = max(deepest, int(infos["furthest_x"].max()))
        now = time.monotonic()
        if now - last > 1.0:
            last = now
            gc.collect()
            at.append(now - began)
            memory.append(rss_mb())
            if len(at) % 30 == 0:
                say(f"{at[-1]:.0f} s, {steps:,} steps, {memory[-1]:.1f} MiB")
    env.close()
    late = len(at) // 10
    return {
        "minutes": round((time.monotonic() - began) / 60, 2),
        "lanes": lanes,
        "steps": steps,
        "episodes": episodes,
        "lanes_reset_at_random": resets,
        "furthest_x": deepest,
        "failures": len(errors),
        "errors": errors[:MOST_ERRORS],
        "rss_mb_first": round(memory[late], 1) if memory else 0.0,
        "rss_mb_last": round(memory[-1], 1) if memory else 0.0,
        "rss_kb_per_minute": round(slope(at[late:], memory[late:]) * 1024 * 60, 1),
    }


def _disturb(env: MarioVectorEnv, rng: np.random.Generator) -> int:
    """Now and then: resets of some lanes, a lane put into another, a twin. Returns lanes reset."""
    lanes, reset = env.num_envs, 0
    if rng.random() < 0.02:
        mask = rng.random(lanes) < 0.25
        if mask.any():
            env.reset(options={"reset_mask": mask})
            reset = int(mask.sum())
    if rng.random() < 0.02:
        source, target = (int(lane) for lane in rng.integers(0, lanes, 2))
        env.load(target, env.save(source))
        env.clone(target, source)
    return reset


def failed_parts(result: dict[str, Any]) -> list[str]:
    """What is wrong with a result; nothing if it is empty."""
    wrong = [f"processes by {name}" for name, same in result["processes"].items() if not same]
    if not result["threads"]["same"]:
        wrong.append("threads")
    for name in ("cycles", "mixed_run"):
        part = result[name]
        if part["failures"]:
            wrong.append(f"{part['failures']} failures in {name}")
        if part["rss_mb_last"] - part["rss_mb_first"] > FLAT:
            wrong.append(f"memory grows in {name}")
    return wrong


def main(words: Sequence[str]) -> int:
    """`native_stability.py`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--most-lanes", type=int, default=MOST_LANES, help="(%(default)s)")
    parser.add_argument("--threads", type=int, default=16, help="thread counts 1.. (%(default)s)")
    parser.add_argument("--minutes", type=float, default=30.0, help="of mixed play (%(default)s)")
    parser.add_argument("--lanes", type=int, default=64, help="of mixed play (%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT, help="(%(default)s)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    args = parser.parse_args(words)
    for name in ("cycles", "most_lanes", "threads", "lanes"):
        if getattr(args, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    plan = (
        f"{args.cycles} cycles, 1 to {args.most_lanes} lanes, 1 to {args.threads} threads, "
        f"{args.minutes:g} minutes of mixed play; result to {args.out}"
    )
    if args.dry_run:
        print(f"[benchmark] would run {plan}")
        return 0
    _say(plan)
    result: dict[str, Any] = {"machine": describe(), "plan": plan}
    parts: list[tuple[str, Callable[[], Any]]] = [
        ("processes", processes),
        ("threads", lambda: threads(args.threads)),
        ("sizes", lambda: sizes(args.most_lanes)),
        ("cycles", lambda: cycles(args.cycles)),
        ("mixed_run", lambda: mixed_run(args.minutes, args.lanes, _say)),
    ]
    for name, part in parts:
        result[name] = part()
        _say(f"{name}: {json.dumps(result[name])[:300]}")
    result["failed"] = failed_parts(result)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    for wrong in result["failed"]:
        _say(f"failed: {wrong}")
    return 1 if result["failed"] else 0


def _say(text: str) -> None:
    print(f"[benchmark] {text}", file=sys.stderr, flush=True)
