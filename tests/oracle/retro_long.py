"""The long comparison with FCEUmm: all 32 stages x three players x both ROMs, and both whole games,
by the interpreter and by translated code.

Prints a JSON summary; `--out` also writes it. Exits with 1 when anything differed. Run it with
tests/helpers on PYTHONPATH (`make oracle-long` does).
"""

import argparse
import importlib.metadata
import itertools
import json
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lockstep import DivergenceError, Lockstep
from movies import load_game
from play_scripts import PLAYERS, start_stage
from retro_reference import RetroConsole

from warpzone import rom
from warpzone.rom import native

CODES = ("interpreter", "translated")
_LIVES, _MODE, _WORLD, _STAGE = 0x075A, 0x0770, 0x075F, 0x075C


def lockstep(variant: str, code: str, every: int) -> Lockstep:
    image = rom.find(variant)
    program = native.prepare(image) if code == "translated" else None
    return Lockstep(image, picture_every=every, native=program)


def run_stage(
    variant: str, code: str, stage: int, style: str, frames: int, every: int
) -> dict[str, Any]:
    player = PLAYERS[style](1000 + stage)
    name = f"{variant} {stage // 4 + 1}-{stage % 4 + 1} {style}, {code}"
    with lockstep(variant, code, every) as pair:
        extra: Counter[str] = Counter()
        try:
            start_stage(pair, stage)
            for _ in range(frames):
                lives_before, mode_before = pair.ram()[[_LIVES, _MODE]].tolist()
                pair.frame(player(pair.ram()))
                lives, mode = pair.ram()[[_LIVES, _MODE]].tolist()
                extra["deaths"] += mode_before == 1 and (lives_before - lives) % 256 == 1
                extra["game_overs"] += mode_before == 1 and mode == 3
        except DivergenceError as error:
            return {"name": name, "counts": pair.counts + extra, "error": str(error)}
        return {"name": name, "counts": pair.counts + extra, "error": None}


def run_game(variant: str, code: str, every: int) -> dict[str, Any]:
    name = f"{variant} whole game, {code}"
    with lockstep(variant, code, every) as pair:
        try:
            for mask in load_game(variant).masks:
                pair.frame(mask)
        except DivergenceError as error:
            return {"name": name, "counts": pair.counts, "error": str(error)}
        ram = pair.ram()
        won = ram[_MODE] == 2 and ram[_WORLD] == 7 and ram[_STAGE] == 3
        return {
            "name": name,
            "counts": pair.counts,
            "error": None if won else "it did not end in victory",
        }


def reference_version() -> str:
    console = RetroConsole(rom.find(next(iter(rom.VARIANTS))))
    version = console.version()
    console.close()
    return version


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=3000, help="frames for each stage and player")
    parser.add_argument("--picture-every", type=int, default=4, help="compare every n-th picture")
    parser.add_argument("--code", choices=CODES, action="append", help="one of both (default both)")
    parser.add_argument("--no-games", action="store_true", help="leave the whole games out")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="also write the summary here")
    args = parser.parse_args()

    codes = args.code or list(CODES)
    began = time.monotonic()
    # Processes, because the core allows one emulator in each.
    context = get_context("spawn")
    with ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
        pairs = list(itertools.product(rom.VARIANTS, codes))
        games = [] if args.no_games else pairs
        jobs = [pool.submit(run_game, *pair, args.picture_every) for pair in games]
        for pair in pairs:
            for stage, style in itertools.product(range(32), PLAYERS):
                run = (*pair, stage, style, args.frames, args.picture_every)
                jobs.append(pool.submit(run_stage, *run))
        results = [job.result() for job in jobs]
        version = pool.submit(reference_version).result()
    total: Counter[str] = sum((result["counts"] for result in results), Counter())
    summary = {
        "reference": f"stable-retro {importlib.metadata.version('stable-retro')}, {version}",
        "variants": list(rom.VARIANTS),
        "code": codes,
        "runs": len(results),
        "frames_per_stage_and_player": args.frames,
        "total": dict(total),
        "whole_games": {r["name"]: dict(r["counts"]) for r in results[: len(games)]},
        "different": [
            {"name": r["name"], "error": r["error"]} for r in results if r["error"] is not None
        ],
        "seconds": round(time.monotonic() - began),
    }
    text = json.dumps(summary, indent=2)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n")
    return 1 if summary["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
