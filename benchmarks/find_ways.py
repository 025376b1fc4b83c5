"""Finds ways through one stage from several start delays, as `--ways` of `warpzone
train` and `warpzone teach` takes them.

    python benchmarks/find_ways.py 8-4 --starts 31 --out build/ways

The engine alone searches, by the rules of a preset: with those of `all` no way turns back in a
maze. Each search begins with the ways that are known by then; of what several seeds find, the
shortest is kept. The folder may hold earlier ways, to which these are added.
"""

import argparse
import json
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import numpy as np

from warpzone import rom
from warpzone.collect.lanes import lane_options
from warpzone.collect.search import LANES, find_way
from warpzone.config import TrainConfig, load_preset
from warpzone.env.actions import action_table
from warpzone.env.stages import LONGEST_DELAY, parse_stages, stage_name
from warpzone.eval.policy import cores
from warpzone.rom import native
from warpzone.run.files import write_text
from warpzone.run.names import CONFIG, WAYS


def search(
    config: TrainConfig, stage: int, delay: int, known: list[list[int]], most_steps: int
) -> tuple[list[int] | None, int]:
    """The actions of a way from this start delay, and the steps taken."""
    image = rom.find(config.rom)
    # Single stages are played to the end of a life otherwise.
    end = "setback" if config.end_on_setback else "life"
    count = len(action_table(config.actions).masks)
    way, steps = find_way(
        lane_options(config, stages=stage_name(stage), start_delay=(delay, delay), end=end),
        image,
        native.load(image),
        stage=stage,
        seed=config.seed,
        chances=np.full(count, 1.0 / count),
        most_steps=most_steps,
        known=known,
    )
    return (None if way is None else list(way.actions)), steps


def main() -> int:
    """Searches, and writes each way when it is found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage")
    parser.add_argument("--preset", default="all")
    parser.add_argument("--starts", type=int, default=31, help="start delays (31)")
    parser.add_argument("--seeds", type=int, default=3, help="searches for each of them (3)")
    parser.add_argument("--most-steps", type=int, default=10_000_000, help="of a search (10000000)")
    parser.add_argument("--out", type=Path, required=True, help="a folder of ways")
    parser.add_argument("--jobs", type=int, default=cores(), help="searches at a time (all cores)")
    args = parser.parse_args()
    (stage,) = parse_stages(args.stage)
    config = load_preset(args.preset)
    args.out.mkdir(parents=True, exist_ok=True)
    same = {"actions": config.actions, "frame_skip": config.frame_skip, "rom": config.rom}
    (args.out / CONFIG).write_text(json.dumps(same, indent=2) + "\n")
    delays = np.random.default_rng(0).permutation(LONGEST_DELAY + 1)[: args.starts].tolist()
    waiting = deque((delay, seed) for seed in range(args.seeds) for delay in delays)
    earlier = (args.out / WAYS).read_text() if (args.out / WAYS).exists() else ""
    best: dict[int, list[int]] = {}
    running: dict[Future[tuple[list[int] | None, int]], int] = {}
    began, taken = time.perf_counter(), 0
    with ProcessPoolExecutor(args.jobs) as pool:
        while waiting or running:
            while waiting and len(running) < args.jobs:
                delay, seed = waiting.popleft()
                # Its own way would end a search at once.
                known = [way for other, way in best.items() if other != delay][-LANES:]
                task = (config.replace(seed=seed), stage, delay, known, args.most_steps)
                running[pool.submit(search, *task)] = delay
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                delay = running.pop(done)
                way, steps = done.result()
                taken += steps
                if way is not None and len(way) < len(best.get(delay, way)) + (delay not in best):
                    best[delay] = way
                    rows = [
                        {"stage": args.stage, "start_delay": other, "actions": best[other]}
                        for other in sorted(best)
                    ]
                    lines = [json.dumps(row, separators=(",", ":")) + "\n" for row in rows]
                    write_text(args.out / WAYS, earlier + "".join(lines))
    lengths = [len(way) for way in best.values()]
    print(
        f"{len(best)} of {len(delays)} start delays have a way, of {min(lengths, default=0)} to "
        f"{max(lengths, default=0)} steps; {taken:,} steps, {time.perf_counter() - began:.0f} s"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
