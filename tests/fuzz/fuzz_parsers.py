"""Fuzzes the parsers of files that users get from others.

    python tests/fuzz/fuzz_parsers.py --runs 100000            # every target
    python tests/fuzz/fuzz_parsers.py report --seed 7 --runs 1 # one input again
    python tests/fuzz/fuzz_parsers.py --even --runs 1300       # many more of the cheap ones

Input number N of a target is made from the seed N, so a failure is repeated with its number. With
--jobs J, J processes share the numbers; each takes every J-th. An input fails that raises anything
but the errors its parser documents, that takes more than --seconds of processor time, or that needs
more than 256 MiB beyond what the process had before."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

#: Bytes of address space that an input may take.
MEMORY = 256 << 20
#: Inputs for which the memory at their start is looked up once.
BATCH = 50
#: Seconds of a target's turn.
SLICE = 10.0


class TooSlowError(BaseException):
    """Not an Exception: no parser may take it for an error of its own."""


def main() -> int:
    args = _arguments()
    return _share_out(args) if args.jobs > 1 and not args.dry_run else _fuzz(args)


def _share_out(args: argparse.Namespace) -> int:
    """The same command once for each job, with its share of the inputs; then the sums."""
    with tempfile.TemporaryDirectory(prefix="warpzone-fuzz-") as place:
        files = [Path(place) / f"{part}.json" for part in range(args.jobs)]
        running = []
        for part, file in enumerate(files):
            words = [*args.targets, "--runs", str(args.runs), "--seed", str(args.seed)]
            words += ["--minutes", str(args.minutes), "--seconds", str(args.seconds)]
            words += ["--most-failures", str(args.most_failures), "--out", str(file)]
            words += ["--even"] if args.even else []
            share = ["--part", str(part), "--parts", str(args.jobs)]
            running.append(subprocess.Popen([sys.executable, __file__, *words, *share]))
        codes = [one.wait() for one in running]
        if not all(file.is_file() for file in files):
            return 1
        results = [json.loads(file.read_text())[0] for file in files]
    whole = results[0]
    for name, found in whole["targets"].items():
        parts = [result["targets"][name] for result in results]
        for key in ("inputs", "failed", "processor_seconds"):
            found[key] = sum(part[key] for part in parts)
        for key in ("slowest_processor_seconds", "seconds"):
            found[key] = max(part[key] for part in parts)
        print(
            f"{name}: {found['inputs']:,} inputs in {found['seconds']} s, {found['failed']} failed"
        )
    whole["command"] += f" --jobs {args.jobs}"
    if args.out:
        there = json.loads(args.out.read_text()) if args.out.is_file() else []
        args.out.write_text(json.dumps([*there, whole], indent=1) + "\n")
    return max(codes)


def _fuzz(args: argparse.Namespace) -> int:
    """All inputs of this process."""
    import targets
    import torch
    from mutate import Mutator

    torch.set_num_threads(1)
    named = {name: targets.TARGETS[name] for name in args.targets or targets.TARGETS}
    if args.dry_run:
        for name, function in named.items():
            print(f"{name}: {function.__doc__}")
        return 0
    with tempfile.TemporaryDirectory(prefix="warpzone-fuzz-", dir=_quick_place()) as place:
        targets.prepare(Path(place) / "seeds")
        chosen = [Target(name, function, args) for name, function in named.items()]
        for one in chosen:
            if args.even:
                one.wanted *= targets.CHEAP.get(one.name, 1)
            one.folder = Path(place) / one.name
            one.folder.mkdir()
            one.keeping = one.name in targets.KEEPING
            # Once without a limit, so that what is imported late does not count.
            one.function(Mutator(-1), one.folder)
        there = args.out is not None and args.out.is_file()
        before = json.loads(args.out.read_text()) if there else []
        until = time.monotonic() + args.minutes * 60 if args.minutes else float("inf")
        # In turns, so that all of them get their share of what time there is.
        while (left := [one for one in chosen if one.left]) and time.monotonic() < until:
            for one in left:
                one.turn(SLICE if args.minutes else float("inf"), Mutator)
                if args.out:
                    _write(args, chosen, before)
    if args.parts == 1:
        for one in chosen:
            print(f"{one.name}: {one.done:,} inputs in {one.took:.1f} s, {one.failed} failed")
    return 1 if any(one.failed for one in chosen) else 0


class Target:
    """One parser, and how far it got."""

    def __init__(self, name: str, function: Any, args: argparse.Namespace) -> None:
        self.name, self.function, self.args = name, function, args
        self.done = self.failed = 0
        #: Inputs of all processes.
        self.wanted: int = args.runs
        #: Seconds by the clock, by the processor, and of the slowest input by the processor.
        self.took = self.worked = self.slowest = 0.0
        #: Where inputs are put, and whether the target clears away there what it must.
        self.folder = Path()
        self.keeping = False

    @property
    def left(self) -> bool:
        # Those of this process, which has every so many-th of all.
        own = len(range(self.args.part, self.wanted, self.args.parts))
        return bool(self.done < own and self.failed < self.args.most_failures)

    def turn(self, seconds: float, mutator: Any) -> None:
        """Inputs for so long."""
        began = time.perf_counter()
        while self.left and time.perf_counter() - began < seconds:
            with _memory():
                for _ in range(BATCH):
                    if self.left:
                        self.input(mutator)
        self.took += time.perf_counter() - began

    def input(self, mutator: Any) -> None:
        """The next one."""
        number = self.args.seed + self.args.part + self.done * self.args.parts
        if not self.keeping:
            _remove_files(str(self.folder))
        before = time.process_time()
        try:
            with _time(self.args.seconds):
                self.function(mutator(number), self.folder)
        except (Exception, TooSlowError):  # noqa: BLE001 (any of them is a finding)
            self.failed += 1
            print(f"== {self.name} --seed {number}", traceback.format_exc(), sep="\n")
        took = time.process_time() - before
        self.worked += took
        self.slowest = max(self.slowest, took)
        self.done += 1


def _write(args: argparse.Namespace, chosen: list[Target], before: list[Any]) -> None:
    from warpzone.bench.machine import describe

    words = " ".join(args.targets)
    more = " --even" if args.even else ""
    more += f" --minutes {args.minutes:g}" if args.minutes else ""
    result = {
        "machine": describe(),
        "command": f"tests/fuzz/fuzz_parsers.py {words} --runs {args.runs} --seed {args.seed}"
        + more,
        "limits": {"mib_above_the_start": MEMORY >> 20, "processor_seconds": args.seconds},
        "targets": {
            one.name: {
                "about": one.function.__doc__,
                "inputs": one.done,
                "failed": one.failed,
                "slowest_processor_seconds": round(one.slowest, 4),
                "seconds": round(one.took, 1),
                "processor_seconds": round(one.worked, 1),
            }
            for one in chosen
        },
    }
    args.out.write_text(json.dumps([*before, result], indent=1) + "\n")


def _quick_place() -> str | None:
    """A folder in memory: an input is some files that live for a moment."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--runs", type=int, default=1000, help="inputs of each target")
    parser.add_argument(
        "--even", action="store_true", help="more of what is cheap: all take about as long"
    )
    parser.add_argument("--minutes", type=float, default=0.0, help="end then; targets take turns")
    parser.add_argument("--out", type=Path, help="a JSON list that the result is added to")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input")
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time of an input")
    parser.add_argument("--most-failures", type=int, default=5, help="then the target is given up")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the inputs")
    for name, default in (("--part", 0), ("--parts", 1)):
        parser.add_argument(name, type=int, default=default, help=argparse.SUPPRESS)
    parser.add_argument("--dry-run", action="store_true", help="list the targets and end")
    return parser.parse_args()


def _remove_files(folder: str) -> None:
    """Everything but folders, which the next input has as well."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove_files(entry.path)
            else:
                os.unlink(entry.path)


@contextlib.contextmanager
def _memory() -> Iterator[None]:
    """What the process has now, and so much more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def _time(seconds: float) -> Iterator[None]:
    """Processor time; the time of others on the machine does not count."""
    signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _too_slow(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlowError("it took too much processor time")


if __name__ == "__main__":
    sys.exit(main())
