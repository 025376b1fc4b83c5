"""Fuzzes the parsers of files that users get from others.

    python tests/fuzz/fuzz_parsers.py --runs 100000            # every target
    python tests/fuzz/fuzz_parsers.py report --seed 7 --runs 1 # one input again

Input number N of a target is made from the seed N, so a failure is repeated with its number. An
input fails that raises anything but the errors its parser documents, that takes more than --seconds
of processor time, or that needs more than 256 MiB beyond what the process had before."""

from __future__ import annotations

import argparse
import contextlib
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

#: Bytes of address space that an input may take.
MEMORY = 256 << 20


class TooSlowError(BaseException):
    """Not an Exception: no parser may take it for an error of its own."""


def main() -> int:
    args = _arguments()
    import targets
    import torch
    from mutate import Mutator

    torch.set_num_threads(1)
    chosen = {name: targets.TARGETS[name] for name in args.targets or targets.TARGETS}
    if args.dry_run:
        for name, function in chosen.items():
            print(f"{name}: {function.__doc__}")
        return 0
    failures = 0
    with tempfile.TemporaryDirectory(prefix="warpzone-fuzz-") as place:
        targets.prepare(Path(place) / "seeds")
        for name, function in chosen.items():
            # Once without a limit, so that what is imported late does not count.
            function(Mutator(-1), _fresh(Path(place) / "input"))
            started, failed = time.perf_counter(), 0
            for number in range(args.seed, args.seed + args.runs):
                folder = _fresh(Path(place) / "input")
                try:
                    with _limits(args.seconds):
                        function(Mutator(number), folder)
                except (Exception, TooSlowError):  # noqa: BLE001 (any of them is a finding)
                    failed += 1
                    print(f"== {name} --seed {number}", traceback.format_exc(), sep="\n")
                    if failed >= args.most_failures:
                        break
            failures += failed
            seconds = time.perf_counter() - started
            print(f"{name}: {args.runs:,} inputs in {seconds:.1f} s, {failed} failed", flush=True)
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all")
    parser.add_argument("--runs", type=int, default=1000, help="inputs of each target")
    parser.add_argument("--seed", type=int, default=0, help="number of the first input")
    parser.add_argument("--seconds", type=float, default=1.0, help="processor time of an input")
    parser.add_argument("--most-failures", type=int, default=5, help="then the target is given up")
    parser.add_argument("--dry-run", action="store_true", help="list the targets and end")
    return parser.parse_args()


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


@contextlib.contextmanager
def _limits(seconds: float) -> Iterator[None]:
    """Processor time and memory; the time of others on the machine does not count."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)


def _too_slow(_signal: int, _frame: FrameType | None) -> None:
    raise TooSlowError("it took too much processor time")


if __name__ == "__main__":
    sys.exit(main())
