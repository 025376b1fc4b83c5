"""`scripts/mutants.py --random N`: N random changes of each package that decides learning.

Nobody chose these changes (`mutations.py`), so the share of them that the tests notice says how
much the tests hold, where the curated list of `tests/faults` says what they hold by name. Each
change runs the tests that name its module first, then the rest of its package's list, until one
fails.

A change that no test could notice, because the program does the same with it, is written down in
`tests/faults/random/equivalent.toml` with the reason; it is counted, and taken out of the score."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from mutation.mutations import Mutation, drawn, mutations_of

#: The tests of each package, the likeliest to notice a change first.
PACKAGES: dict[str, tuple[str, ...]] = {
    "algo": (
        "tests/unit/algo",
        "tests/property/test_returns.py",
        "tests/property/test_learner.py",
    ),
    "data": (
        "tests/unit/data",
        "tests/property/test_replay.py",
        "tests/unit/learn/test_replaying.py",
        "tests/unit/collect/test_collector.py",
        "tests/property/test_learner.py",
    ),
    "train": ("tests/unit/train", "tests/unit/observers/test_second_source.py"),
    "env": ("tests/unit/env", "tests/unit/eval/test_plain_loop.py"),
    "eval": ("tests/unit/eval",),
    "run": ("tests/unit/run", "tests/unit/train/test_loop.py"),
}
#: Where tests may be that name a module; those of whole commands take too long.
PLACES = ("tests/unit", "tests/property", "tests/oracle", "tests/fuzz")
#: These say nothing about changes, or take minutes.
LEFT_OUT = (
    "test_mutants.py",
    "test_learning.py",
    "test_retro.py",
    "test_leaks.py",
    "test_checkpoint_perf.py",
    "test_eval_speed.py",
)
EQUIVALENT = Path("tests") / "faults" / "random" / "equivalent.toml"
COUNTED = ("caught", "timeout", "survived", "equivalent")


class Tree(Protocol):
    """A copy of the project."""

    place: Path

    def settings(self) -> dict[str, str]: ...


@dataclass(frozen=True)
class Task:
    """One change and the tests that are to notice it."""

    mutation: Mutation
    tests: tuple[str, ...]


def mutations(root: Path, package: str) -> list[Mutation]:
    """All changes of a package."""
    files = sorted((root / "src" / "warpzone" / package).rglob("*.py"))
    return [
        one
        for file in files
        for one in mutations_of(file.relative_to(root).as_posix(), file.read_text())
    ]


def tests_of(root: Path, file: str, package: str) -> tuple[str, ...]:
    """Tests that name a module, by how often, then those of its package."""
    module = ".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__")
    parent, _, name = module.rpartition(".")
    naming = re.compile(rf"{re.escape(module)}\b|from {re.escape(parent)} import .*\b{name}\b")
    found: list[tuple[int, str]] = []
    for place in PLACES:
        for path in (root / place).rglob("test_*.py"):
            count = len(naming.findall(path.read_text()))
            if count and path.name not in LEFT_OUT:
                found.append((-count, path.relative_to(root).as_posix()))
    named = [path for _, path in sorted(found)]
    return tuple(dict.fromkeys([*named, *PACKAGES[package]]))


def tasks(root: Path, count: int, seed: int, wanted: Iterable[str] = ()) -> list[Task]:
    """The changes of each package that the seed draws; all packages advance together, so that a
    run that is stopped says something about each."""
    draws = [drawn(mutations(root, package), count, seed) for package in wanted or PACKAGES]
    together = itertools.chain.from_iterable(itertools.zip_longest(*draws))
    return [Task(one, tests_of(root, one.file, one.package)) for one in together if one]


def equivalents(root: Path) -> dict[str, str]:
    """Why a change changes nothing that could be noticed, by its key."""
    entries = tomllib.loads((root / EQUIVALENT).read_text())["equivalent"]
    return {entry["change"]: entry["why"] for entry in entries}


def verdict(tree: Tree, task: Task, seconds: float) -> tuple[str, str]:
    """What became of one change, and the test that noticed it; the copy is as it was afterwards.

    The tests pass without the change, so whatever ends them otherwise has noticed it: an import
    that fails too."""
    path = tree.place / task.mutation.file
    source = path.read_text()
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *task.tests]
    command += [f"--ignore-glob=*/{name}" for name in LEFT_OUT]
    try:
        path.write_text(task.mutation.planted(source))
        with subprocess.Popen(
            command,
            cwd=tree.place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**tree.settings(), "CI": ""},
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "timeout", ""
    finally:
        path.write_text(source)
    if process.returncode == 0:
        return "survived", ""
    noticed = re.search(r"^(?:FAILED|ERROR) (\S+)", said, re.MULTILINE)
    return "caught", noticed[1] if noticed else f"exit code {process.returncode}"


def scores(results: dict[str, Any], same: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Of each package: how many changes had which result, and which share was noticed."""
    table: dict[str, dict[str, Any]] = {}
    for key, entry in results.items():
        row = table.setdefault(entry["package"], dict.fromkeys(("changes", *COUNTED), 0))
        row["changes"] += 1
        survived = entry["result"] == "survived"
        row["equivalent" if survived and key in same else entry["result"]] += 1
    for row in table.values():
        decided = row["changes"] - row["equivalent"]
        row["score"] = round((row["caught"] + row["timeout"]) / decided, 3) if decided else None
    return table


def section(
    results: dict[str, Any], same: dict[str, str], listed: Sequence[Task], seed: int
) -> dict[str, Any]:
    """What goes into the file: the changes that are still drawn, with their verdicts."""
    kept = {task.mutation.key: results[task.mutation.key] for task in listed
            if task.mutation.key in results}  # fmt: skip
    return {
        "command": "make mutants MUTANTS='--random N --seed S'",
        "seed": seed,
        "packages": scores(kept, same),
        "results": kept,
    }


def run(
    trees: Sequence[Tree],
    todo: Sequence[Task],
    seconds: float,
    tell: Callable[[Task, dict[str, Any]], None],
) -> None:
    """Plants every change in one of the copies; `tell(task, entry)` hears of each verdict."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)
    telling = threading.Lock()

    def one(task: Task) -> None:
        tree = free.get()
        try:
            began = time.monotonic()
            result, noticed = verdict(tree, task, seconds)
            entry = {
                "package": task.mutation.package,
                "line": task.mutation.line,
                "result": result,
                "seconds": round(time.monotonic() - began),
                "date": time.strftime("%Y-%m-%d"),
            }
            with telling:
                tell(task, {**entry, "noticed_by": noticed} if noticed else entry)
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        for done in [pool.submit(one, task) for task in todo]:
            done.result()
