"""The long comparison with FCEUmm: all 32 stages x three players x both ROMs, and both whole games,
by the interpreter, by compiled code and by emitted code, all three beside one FCEUmm.

Prints a JSON summary; `--out` also writes it. Exits with 1 when anything differed. Run it with
tests/helpers on PYTHONPATH (`make oracle-long` does).
"""

import argparse
import hashlib
import importlib.metadata
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lockstep import DivergenceError, Lockstep
from movies import load_game
from play_scripts import PLAYERS, start_stage
from retro_reference import RetroConsole

from warpzone import _engine, rom
from warpzone.rom import native

CODES = ("interpreter", "translated", "emitted")
_LIVES, _MODE, _WORLD, _STAGE = 0x075A, 0x0770, 0x075F, 0x075C


def lockstep(variant: str, codes: Sequence[str], every: int) -> Lockstep:
    image = rom.find(variant)
    natives = [program_of(image, code) for code in codes]
    return Lockstep(image, picture_every=every, natives=natives)


def program_of(image: bytes, code: str) -> "_engine.NativeProgram | None":
    if code == "interpreter":
        return None
    if code == "emitted":
        return native.emit(image)
    program = native.prepare(image)
    # Without a compiler it would be emitted code, under the name of the other.
    if program.how != "compiled":
        raise native.NativeError("compiled code is to be compared, but there is none here.")
    return program


def run_stage(
    variant: str, codes: Sequence[str], stage: int, style: str, frames: int, every: int
) -> dict[str, Any]:
    player = PLAYERS[style](1000 + stage)
    with lockstep(variant, codes, every) as pair:
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
            return {"counts": pair.counts + extra, "error": str(error)}
        return {"counts": pair.counts + extra, "error": None}


def run_game(variant: str, codes: Sequence[str], every: int) -> dict[str, Any]:
    with lockstep(variant, codes, every) as pair:
        try:
            for mask in load_game(variant).masks:
                pair.frame(mask)
        except DivergenceError as error:
            return {"counts": pair.counts, "error": str(error)}
        ram = pair.ram()
        won = ram[_MODE] == 2 and ram[_WORLD] == 7 and ram[_STAGE] == 3
        return {"counts": pair.counts, "error": None if won else "it did not end in victory"}


def timed(name: str, play: Callable[..., dict[str, Any]], *settings: Any) -> dict[str, Any]:
    began = time.monotonic()
    result = play(*settings)
    return {"name": name, **result, "seconds": time.monotonic() - began}


class Journal:
    """Runs that have ended alike, one JSON object on each line: a comparison that was stopped goes
    on behind them. Those of another engine or with other settings do not count."""

    def __init__(self, path: Path | None, settings: dict[str, Any]) -> None:
        self._path = path
        engine = Path(_engine.__file__).read_bytes()
        self._settings = {**settings, "engine": hashlib.sha256(engine).hexdigest()[:16]}
        self.done: dict[str, dict[str, Any]] = {}
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        for entry in map(json.loads, lines):
            if entry.pop("settings") == self._settings:
                self.done[entry["name"]] = {**entry, "counts": Counter(entry["counts"])}

    def add(self, result: dict[str, Any]) -> None:
        self.done[result["name"]] = result
        if self._path is not None and result["error"] is None:
            with self._path.open("a") as file:
                file.write(json.dumps({**result, "settings": self._settings}) + "\n")


def listed(args: argparse.Namespace, codes: list[str]) -> Iterator[tuple[Any, ...]]:
    """The name of each run, what plays it, and its settings; whole games first."""
    for variant in () if args.no_games else rom.VARIANTS:
        yield f"{variant} whole game", run_game, variant, codes, args.picture_every
    for variant, stage, style in itertools.product(rom.VARIANTS, range(32), PLAYERS):
        name = f"{variant} {stage // 4 + 1}-{stage % 4 + 1} {style}"
        yield name, run_stage, variant, codes, stage, style, args.frames, args.picture_every


def reference_version() -> str:
    console = RetroConsole(rom.find(next(iter(rom.VARIANTS))))
    version = console.version()
    console.close()
    return version


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=3000, help="frames for each stage and player")
    parser.add_argument("--picture-every", type=int, default=4, help="compare every n-th picture")
    parser.add_argument("--code", choices=CODES, action="append", help="one of them (default all)")
    parser.add_argument("--no-games", action="store_true", help="leave the whole games out")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--journal", type=Path, help="write ended runs here, and go on behind them")
    parser.add_argument("--out", type=Path, help="also write the summary here")
    args = parser.parse_args()

    codes = args.code or list(CODES)
    settings = {"code": codes, "frames": args.frames, "picture_every": args.picture_every}
    journal = Journal(args.journal, settings)
    runs = list(listed(args, codes))
    # Processes, because the core allows one emulator in each.
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        version = pool.submit(reference_version).result()
        left = [run for run in runs if run[0] not in journal.done]
        for job in as_completed([pool.submit(timed, *run) for run in left]):
            journal.add(job.result())
    results = [journal.done[run[0]] for run in runs]
    total: Counter[str] = sum((result["counts"] for result in results), Counter())
    summary = {
        "reference": f"stable-retro {importlib.metadata.version('stable-retro')}, {version}",
        "variants": list(rom.VARIANTS),
        "code": codes,
        "runs": len(results),
        "frames_per_stage_and_player": args.frames,
        "total": dict(total),
        "whole_games": {
            r["name"]: dict(r["counts"]) for r in results if r["name"].endswith("whole game")
        },
        "different": [
            {"name": r["name"], "error": r["error"]} for r in results if r["error"] is not None
        ],
        "seconds": round(sum(r["seconds"] for r in results)),
    }
    text = json.dumps(summary, indent=2)
    print(text)
    if args.out is not None:
        args.out.write_text(text + "\n")
    return 1 if summary["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
