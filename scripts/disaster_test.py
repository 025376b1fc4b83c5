"""Lets disasters happen to a training run at random moments: the disk fills up, memory runs out,
the folder is removed or moved, the clock jumps by years, the disk becomes read-only. Each must end
the run with one sentence and exit code 1 (a clock must not end it at all), and lose no more than
one interval of checkpoints; then the run is resumed. Prints the result as JSON; exit code 1 if
anything is wrong.

    python scripts/disaster_test.py --each 50 --out benchmarks/disasters.json

Nothing is simulated but the clock, which is a preloaded library: the run's folder lies on a small
file system of its own, which is filled, or covered by a mount that is read-only; memory is a limit
on the address space. That needs Linux, root, and a C compiler."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from kill_test import Victim, straight
from killing.comparing import compare, identical
from killing.lives import BrokenError, Life
from killing.settings import KINDS

from warpzone.bench.machine import describe
from warpzone.config import TrainConfig
from warpzone.train.estimate import count_memory

#: Updates between two checkpoints, so that there is something to lose.
INTERVAL = 2
SETTINGS = {**KINDS["stateful"], "checkpoint_interval": INTERVAL}
#: One disaster in this many comes before the first update.
EARLY = 6
#: Seconds after an update within which a disaster comes.
LATEST = 0.6
#: Seconds until a run must have ended.
PATIENCE = 120.0
#: Seconds after which a run without memory that goes on with what it has is ended.
CONTENT = 6.0
#: The file system of the run: some checkpoints, and what must stay free.
SIZE = 64 << 20
#: Then a kind is given up.
MOST_FAILURES = 10
#: glibc: larger blocks are taken from the system and given back, and so may be refused at any time.
GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "16384", "MALLOC_TRIM_THRESHOLD_": "16384"}
YEAR = 365 * 86_400


class Sufferer(Victim):
    """A run that disasters happen to."""

    def __init__(self, runs: Path, seed: int) -> None:
        super().__init__(runs, seed, SETTINGS)
        self.log = runs.parent / "sufferer.log"
        #: Where in the log the present life begins.
        self.since = 0
        self.interval = INTERVAL

    def said(self, since: int) -> str:
        return self.log.read_text(errors="replace")[since:] if self.log.is_file() else ""

    def until_the_moment(self, process: Life, early: bool) -> None:
        before, began = self.size(), time.monotonic()
        if early:
            self.wait(process, self.chance.uniform(0.0, self.startup))
            return
        while self.size() <= before:
            if time.monotonic() - began > PATIENCE:
                raise BrokenError("it made no update: " + self.last_words())
            self.wait(process, 0.02)
        self.startup = 0.7 * self.startup + 0.3 * (time.monotonic() - began)
        self.wait(process, self.chance.uniform(0.0, LATEST))

    def ended(self, process: Life, seconds: float = PATIENCE) -> bool:
        until = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        return process.poll() is not None


#: Makes the disaster; returns what undoes it, and whether the run must end by itself.
Strike = Callable[[Sufferer, Life], "Mend"]
Mend = Callable[[], None]


def nothing() -> None:
    """There is nothing to mend."""


def disk_full(victim: Sufferer, _: Life) -> Mend:
    """Somebody else takes what is left, or all but a little, so that files are cut anywhere."""
    filler = victim.runs / "filler"
    left = victim.chance.choice((0, 0, 4096, 64 << 10, 1 << 20))
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            free = shutil.disk_usage(victim.runs).free - left
            if free <= 0 or not file.write(bytes(min(free, 1 << 20))):
                break
    return filler.unlink


def memory_full(victim: Sufferer, process: Life) -> Mend:
    """The process gets no more than what it has, and a little."""
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + victim.chance.choice((-(1 << 30), 0, 0, 1 << 20))
    resource.prlimit(process.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    return nothing


def folder_gone(victim: Sufferer, process: Life) -> Mend:
    """Removed or moved away. Before the run has opened its folder, there is nothing to take from
    it: it would begin anew, and rightly."""
    while f"{victim.folder} on cpu" not in victim.said(victim.since):
        victim.wait(process, 0.01)
    elsewhere = victim.runs / "elsewhere"
    if victim.chance.random() < 0.5:
        victim.folder.rename(elsewhere)
    else:
        # The run may be writing there at this moment.
        while victim.folder.exists():
            shutil.rmtree(victim.folder, ignore_errors=True)
        victim.newest = 0

    def mend() -> None:
        if victim.folder.exists():
            raise BrokenError("a folder was made in place of the one that is gone")
        if elsewhere.exists():
            elsewhere.rename(victim.folder)

    return mend


def read_only(victim: Sufferer, _: Life) -> Mend:
    """The file system is the same, and nothing can be written to it any more."""
    mount("--bind", str(victim.runs.parent / "frozen"), str(victim.runs))
    return lambda: umount(victim.runs)


def clock_jumps(victim: Sufferer, process: Life) -> Mend:
    """A few times, by seconds to years, both ways; the run goes on."""
    for _ in range(victim.chance.randrange(1, 4)):
        days = victim.chance.choice((3600, 86_400, YEAR, 20 * YEAR))
        set_clock(int(victim.chance.uniform(-1, 1) * days))
        before, began = victim.size(), time.monotonic()
        while victim.size() <= before:
            victim.wait(process, 0.02)
            if time.monotonic() - began > PATIENCE:
                raise BrokenError("no update was made after the clock had jumped")
    return nothing


DISASTERS: dict[str, Strike] = {
    "disk full": disk_full,
    "memory full": memory_full,
    "folder gone": folder_gone,
    "read only": read_only,
    "clock jumps": clock_jumps,
}


def set_clock(seconds: int) -> None:
    with open(os.environ["CLOCK_JUMP"], "r+b") as file:
        file.write(struct.pack("q", seconds))


def mount(*words: str) -> None:
    subprocess.run(["mount", *words], check=True)


def umount(place: Path) -> None:
    # Somebody may still be looking.
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def suffer(victim: Sufferer, name: str, early: bool, counts: Counter[str]) -> None:
    """One life with one disaster, and what it left."""
    victim.since = len(victim.said(0))
    process = victim.start()
    mend = nothing
    try:
        victim.until_the_moment(process, early)
        mend = DISASTERS[name](victim, process)
        endless = name == "clock jumps"
        alone = not endless and victim.ended(
            process, CONTENT if name == "memory full" else PATIENCE
        )
        code = process.code if alone else process.end(signal.SIGTERM)
    finally:
        process.end(signal.SIGKILL)
        mend()
    judge(name, code, alone, victim.said(victim.since), counts)
    if (victim.folder / "config.json").is_file():
        victim.examine()


def judge(name: str, code: int | None, alone: bool, said: str, counts: Counter[str]) -> None:
    """How a life ended: with one sentence if by itself, in good order if not."""
    if any(word in said for word in ("Traceback", "Exception", "terminate called")):
        raise BrokenError(f"not a sentence: {said[-3000:]}")
    complaints = [line for line in said.splitlines() if line and not line.startswith("[")]
    if not alone:
        may = name in ("clock jumps", "memory full")
        if not may or code not in (128 + signal.SIGTERM, 1) or len(complaints) > (code == 1):
            raise BrokenError(f"it ended with {code}: {said[-1500:]}")
        counts["went on until it was asked to end"] += 1
        return
    if code != 1 or len(complaints) != 1 or not complaints[0].startswith("warpzone train: "):
        raise BrokenError(f"it ended with {code} and {len(complaints)} sentences: {said[-1500:]}")
    if "space kept back" in said:
        counts["last checkpoint in the space kept back"] += 1
    counts[shortened(complaints[0])] += 1


def shortened(sentence: str) -> str:
    """Without the names and numbers that differ each time."""
    words = sentence.removeprefix("warpzone train: ").split()
    return " ".join(
        "…" if "/" in word or any(c.isdigit() for c in word) else word for word in words
    )


def run(name: str, each: int, seed: int, place: Path) -> dict[str, Any]:
    """So many disasters of one kind, one after the other, in one run."""
    runs, frozen = place / "runs", place / "frozen"
    for folder in (runs, frozen):
        folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={SIZE}", "none", str(runs))
    mount("--bind", str(runs), str(frozen))
    mount("-o", "remount,ro,bind", str(frozen))
    victim, counts, began = Sufferer(runs, seed), Counter[str](), time.monotonic()
    failures: list[str] = []
    result: dict[str, Any] = {"disasters": 0, "before the first update": 0, "failures": failures}
    try:
        for number in range(each):
            early = number % EARLY == EARLY - 1 and name != "clock jumps"
            try:
                suffer(victim, name, early, counts)
            except BrokenError as broken:
                failures.append(str(broken))
                # What one disaster spoiled is not to count again.
                shutil.rmtree(victim.folder, ignore_errors=True)
                victim.newest = 0
                if len(failures) >= MOST_FAILURES:
                    break
            result["disasters"] += 1
            result["before the first update"] += early
        updates = victim.finish()
        victim.examine()
        result |= {"updates": updates, "ok": not failures}
        if name == "clock jumps":
            set_clock(0)
            found = compare(victim.folder, straight(runs, updates))
            result |= {"bit_identical": identical(found)}
            result["ok"] &= result["bit_identical"]
    except BrokenError as broken:
        failures.append(str(broken))
        result["ok"] = False
    finally:
        for folder in (frozen, runs):
            umount(folder)
        for folder in (frozen, runs):
            folder.rmdir()
    return {
        "command": f"scripts/disaster_test.py '{name}' --each {each} --seed {seed}",
        "machine": describe(),
        **result,
        "endings": dict(counts),
        "seconds": round(time.monotonic() - began, 1),
    }


def with_clock() -> None:
    """Starts this script again with a clock that can jump."""
    folder = tempfile.mkdtemp(prefix="disaster-clock-")
    library, jump = Path(folder) / "clock.so", Path(folder) / "jump"
    jump.write_bytes(bytes(8))
    source = Path(__file__).with_name("jumping_clock.c")
    compiler = os.environ.get("CC", "cc")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    settings = {"LD_PRELOAD": str(library), "CLOCK_JUMP": str(jump), **GIVE_BACK}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **settings})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="; ".join(DISASTERS))
    parser.add_argument("--each", type=int, default=50, help="disasters of each kind")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--out", type=Path, help="also put the result into this file")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    args = parser.parse_args()
    kinds = args.kinds or list(DISASTERS)
    if unknown := set(kinds) - DISASTERS.keys():
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if args.dry_run:
        print(f"would let {args.each} disasters of each kind happen: {'; '.join(kinds)}")
        return 0
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        print("disaster_test: mounts need root on Linux.", file=sys.stderr)
        return 1
    if "CLOCK_JUMP" not in os.environ:
        with_clock()
    torch.set_num_threads(1)
    os.environ["MARIO_ALLOW_CPU_AUTO"] = "1"
    count_memory(TrainConfig(**SETTINGS))  # Loads what it needs of PyTorch, before the forks.
    place = Path(tempfile.mkdtemp(prefix="disaster-test-"))
    try:
        found = {kind: run(kind, args.each, args.seed, place) for kind in kinds}
        if args.out and args.out.is_file():
            found = {**json.loads(args.out.read_text())["kinds"], **found}
    finally:
        shutil.rmtree(place, ignore_errors=True)
        shutil.rmtree(Path(os.environ["CLOCK_JUMP"]).parent, ignore_errors=True)
    result = {
        "checkpoint_interval_updates": INTERVAL,
        "settings": SETTINGS,
        "kinds": found,
        "ok": all(one["ok"] for one in found.values()),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
