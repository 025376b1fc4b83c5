"""The regressions: many trials one after another, each with a row in the report."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from warpzone.env.backends.events import say
from warpzone.env.backends.interface import BackendError
from warpzone.env.backends.opening import agree
from warpzone.env.backends.select import check_installed, check_name
from warpzone.env.backends.worker_lanes import WorkerSettings
from warpzone.stability import digest, report
from warpzone.stability.trial import STEPS, Trial, run

#: Time for a trial that is out of time to write its stacks.
_STACK_SECONDS = 1.0
_KEPT_TEXT = 4000


def parser(what: str, trials: int, num_envs: int) -> argparse.ArgumentParser:
    """The flags that both regressions have."""
    made = argparse.ArgumentParser(description=what)
    made.add_argument("--trials", type=int, default=trials, help="how many (%(default)s)")
    made.add_argument("--num-envs", type=int, default=num_envs, help="lanes (%(default)s)")
    made.add_argument("--seed", type=int, default=0, help="of the first trial (%(default)s)")
    made.add_argument("--backend", default="nes-py", help="nes-py, retro or module:factory")
    made.add_argument("--steps", type=int, default=STEPS, help="played by each lane (%(default)s)")
    made.add_argument("--report", type=Path, default=Path(report.REPORT), help="file of the rows")
    made.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    return made


def checked(made: argparse.ArgumentParser, words: Sequence[str]) -> argparse.Namespace:
    """The flags, refused with one sentence when they make no sense."""
    args = made.parse_args(words)
    for name in ("trials", "num_envs", "steps"):
        if getattr(args, name) < 1:
            made.error(f"--{name.replace('_', '-')} must be at least 1")
    wrong = check_name(args.backend)
    if wrong or args.backend == "native":
        made.error(wrong or "the native engine has a script of its own, native_stability.py")
    return args


def sync_main(words: Sequence[str]) -> int:
    """`run_sync_regression.py`."""
    args = checked(parser("All lanes in one process, again and again.", 5, 4), words)
    trials = [
        Trial(args.backend, args.num_envs, args.seed + number, True, steps=args.steps)
        for number in range(args.trials)
    ]
    return _drive(args, (run(trial) for trial in trials))


def async_main(words: Sequence[str]) -> int:
    """`run_async_regression.py`."""
    made = parser("Lanes in worker processes; every trial in a process of its own.", 20, 8)
    made.add_argument("--timeout", type=float, default=120.0, help="seconds for a trial")
    made.add_argument("--prewarm-count", type=int, default=0, help="games made in the parent first")
    made.add_argument("--start-method", default="auto", help="auto, forkserver, spawn or fork")
    made.add_argument("--worker-start-delay", type=float, default=0.2, help="seconds")
    made.add_argument("--reports", type=Path, default=Path(report.REPORTS), help="for diagnostics")
    args = checked(made, words)
    return _drive(args, (_async_trial(args, args.seed + n) for n in range(args.trials)))


def trial_main(words: Sequence[str]) -> int:
    """`async_trial_worker.py <num_envs> <seed>`: one trial; its row goes to standard output."""
    made = argparse.ArgumentParser(description="One trial with worker processes.")
    made.add_argument("num_envs", type=int)
    made.add_argument("seed", type=int)
    made.add_argument("--backend", default="nes-py")
    made.add_argument("--steps", type=int, default=STEPS)
    made.add_argument("--prewarm-count", type=int, default=0)
    made.add_argument("--start-method", default="auto")
    made.add_argument("--worker-start-delay", type=float, default=0.2)
    made.add_argument("--diag-dir", default="")
    made.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    args = made.parse_args(words)
    if args.num_envs < 1:
        made.error("num_envs must be at least 1")
    settings = WorkerSettings(args.start_method, args.worker_start_delay, folder=args.diag_dir)
    trial = Trial(
        args.backend, args.num_envs, args.seed, False, args.prewarm_count, settings, args.steps
    )
    if args.dry_run:
        print(json.dumps({**trial.row(), "dry_run": True}))
        return 0
    _stacks_on_request()
    row = run(trial, say)
    print(json.dumps(row), flush=True)
    return 0 if report.ok(row) else 1


def _stacks_on_request() -> None:
    import faulthandler

    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)


def _drive(args: argparse.Namespace, rows: Iterator[dict[str, Any]]) -> int:
    plan = f"{args.trials} trials x {args.num_envs} lanes on {args.backend}, rows to {args.report}"
    if args.dry_run:
        print(f"[benchmark] would run {plan}")
        return 0
    try:
        agree(args.backend)
        check_installed(args.backend)
    except BackendError as error:
        print(f"[benchmark] {error}.", file=sys.stderr)
        return 1
    print(f"[benchmark] {plan}", flush=True)
    done: list[dict[str, Any]] = []
    for number, row in enumerate(rows, 1):
        report.append(args.report, row)
        done.append(row)
        state = "ok" if report.ok(row) else f"failed: {row['error']}"
        print(
            f"[benchmark] trial {number}/{args.trials} {row['duration']:.2f} s {state}", flush=True
        )
    print(report.summary(done))
    return 0 if all(map(report.ok, done)) else 1


def _async_trial(args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """A trial in a process of its own, which is ended when it is out of time."""
    with tempfile.TemporaryDirectory(prefix="warpzone_trial_") as folder:
        words = [
            *(sys.executable, "-m", "warpzone.stability.async_trial"),
            *(str(args.num_envs), str(seed), "--backend", args.backend),
            *("--steps", str(args.steps), "--prewarm-count", str(args.prewarm_count)),
            *("--start-method", args.start_method, "--diag-dir", folder),
            *("--worker-start-delay", str(args.worker_start_delay)),
        ]
        row = Trial(args.backend, args.num_envs, seed, False).row()
        began = time.monotonic()
        out, err, timed_out = _run(words, args.timeout)
        row |= {"worker_stderr": err[-_KEPT_TEXT:], "timeout": args.timeout}
        row["duration"] = round(time.monotonic() - began, 3)
        answer = _last_object(out)
        if timed_out:
            row["error"] = f"timeout after {args.timeout:g} s"
            row |= {"worker_stdout_partial": out[-_KEPT_TEXT:]}
            row |= {"worker_stderr_partial": err[-_KEPT_TEXT:]}
        elif answer is None:
            row |= {"error": "the trial ended without a result"}
        else:
            row |= answer
        if not report.ok(row):
            kept = report.keep_diagnostics(Path(folder), args.reports, seed, args.num_envs)
            row["diagnostics"] = str(kept)
        return row


def _run(words: list[str], timeout: float) -> tuple[str, str, bool]:
    # A group of its own, so that its workers can be ended with it; the same modules as here.
    process = subprocess.Popen(  # noqa: S603 - our own module
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGUSR1)
        try:
            out, err = process.communicate(timeout=_STACK_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        return out, err, True
    return out, err, False


def _last_object(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    return None


def parse_main(words: Sequence[str]) -> int:
    """`parse_env_report.py`."""
    made = argparse.ArgumentParser(
        description="What the trials of a report say together, and what is in folders of "
        "diagnostics (reports/async_diag_*)."
    )
    made.add_argument("path", nargs="*", type=Path, default=[Path(report.REPORT)])
    made.add_argument("--json", action="store_true", help="of folders, as JSON lines")
    made.add_argument("--dry-run", action="store_true", help="only check that it can be read")
    args = made.parse_args(words)
    return max(_parse(path, as_json=args.json, dry_run=args.dry_run) for path in args.path)


def _parse(path: Path, *, as_json: bool, dry_run: bool) -> int:
    if path.is_dir():
        found = [digest.digest(folder) for folder in digest.folders(path)]
        if not found:
            print(f"parse_env_report: there are no diagnostics in {path}.", file=sys.stderr)
            return 1
        if dry_run:
            print(f"{len(found)} folders of diagnostics can be read")
            return 0
        for one in found:
            print(json.dumps(one) if as_json else digest.describe(one))
        return 0
    try:
        rows = report.read(path)
    except (OSError, ValueError) as error:
        print(f"parse_env_report: {error}.", file=sys.stderr)
        return 1
    print(f"{len(rows)} rows can be read" if dry_run else report.summary(rows))
    return 0
