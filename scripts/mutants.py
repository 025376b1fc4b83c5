"""Plants one fault after the other and says which of them the tests notice.

Faults are data: `tests/faults/PACKAGE.toml` lists them with the file, the text that is there, the
text that is put in its place, and the tests that are to notice. Each is planted in a copy of the
tree; yours is never touched. The tests pass on the unchanged copy first, or nothing counts.

`--random N` plants instead N random changes of each package that decides learning (`--seed` draws
others); the same N again goes on where it stopped, and `--again` repeats those that survived.

A fault is `caught` when a test fails, `survived` when all pass, `timeout` when they do not end, and
`invalid` when the tests could not even begin: that says nothing about them. Results go to a JSON
file, with a score for each package; those of faults that were not run stay as they were. A signal
(Ctrl-C) ends the tests under way and removes the copies; verdicts so far are kept."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mutation import random_mutants
from mutation.place import hold_if_stopped, workplace

ROOT = Path(__file__).parent.parent
FAULTS = ROOT / "tests" / "faults"
OUT = ROOT / "benchmarks" / "mutants.json"
#: How a test of the engine is written in the list: the name of its executable follows.
ENGINE = "engine:"
SECONDS = 300.0
#: What the tests of a caught fault end with; everything else that is not 0 is no verdict.
TESTS_FAILED = 1
#: What a test of the engine ends with that could not run.
SKIPPED = 77
#: Of the random changes of a package, the share that must be noticed.
WANTED = 0.85
RESULTS = ("caught", "timeout", "survived", "invalid")


class FaultError(ValueError):
    """A list of faults that does not fit the source; one sentence that says why."""


@dataclass(frozen=True)
class Fault:
    """One change that should not go unnoticed."""

    package: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"{self.package}/{self.name}"

    def planted(self, source: str) -> str:
        """The source with the fault in it; FaultError unless the text is there exactly once."""
        count = source.count(self.old)
        if count != 1:
            raise FaultError(f"{self.key}: {self.file} has its text {count} times, not once")
        return source.replace(self.old, self.new)


def load(folder: Path = FAULTS) -> list[Fault]:
    """All faults, in the order of their lists."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text())["fault"]:
            tests = tuple(entry["tests"])
            texts = {name: entry[name].strip("\n") for name in ("old", "new")}
            found.append(Fault(path.stem, entry["name"], entry["file"], tests=tests, **texts))
    return found


def check(faults: Iterable[Fault], root: Path = ROOT) -> None:
    """FaultError if a fault cannot be planted, changes nothing, or names tests that are not."""
    keys: set[str] = set()
    for fault in faults:
        if fault.key in keys:
            raise FaultError(f"{fault.key} is there twice")
        keys.add(fault.key)
        source = (root / fault.file).read_text()
        if fault.planted(source) == source:
            raise FaultError(f"{fault.key} changes nothing")
        for test in fault.tests:
            engine = f"engine/tests/{test.removeprefix(ENGINE)}.cpp"
            place = engine if test.startswith(ENGINE) else test.split("::")[0]
            if not (root / place).exists():
                raise FaultError(f"{fault.key}: there is no {place}")


class Copy:
    """The tree once more, to be changed and put back."""

    def __init__(self, root: Path, place: Path) -> None:
        self.place = place
        place.mkdir(parents=True, exist_ok=True)
        listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
        names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (root / name).is_file():
                target = place / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, target)
        engine = importlib.util.find_spec("warpzone._engine")
        if engine is None or engine.origin is None:
            raise FaultError("the engine is not built; run `make setup`")
        shutil.copy2(engine.origin, place / "src" / "warpzone")

    def run(self, tests: Sequence[str], seconds: float) -> str:
        """What became of the tests: one of RESULTS, `survived` if all passed."""
        engine = [test.removeprefix(ENGINE) for test in tests if test.startswith(ENGINE)]
        python = [test for test in tests if not test.startswith(ENGINE)]
        result = "survived"
        if engine:
            result = self._engine(engine, seconds)
        if python and result == "survived":
            result = self._call(
                [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *python],
                seconds,
            )
        return result

    def _engine(self, names: Sequence[str], seconds: float) -> str:
        """Builds some of the engine's tests and runs them; a build that fails is no verdict."""
        build = self.place / "build" / "mutants"
        if not (build / "build.ninja").exists():
            options = ["-G", "Ninja", "-DWARPZONE_TESTS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
            self._made(["cmake", "-S", str(self.place), "-B", str(build), *options])
        if not self._made(["cmake", "--build", str(build), "--target", *names]):
            return "invalid"
        for name in names:
            result = self._call([str(build / name)], seconds)
            if result != "survived":
                return result
        return "survived"

    def _made(self, command: Sequence[str]) -> bool:
        done = subprocess.run(command, cwd=self.place, capture_output=True, env=self.settings())
        hold_if_stopped()
        return done.returncode == 0

    def _call(self, command: Sequence[str], seconds: float) -> str:
        # In a session of their own, so that what they started ends with them.
        with subprocess.Popen(
            command,
            cwd=self.place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self.settings(),
            start_new_session=True,
        ) as process:
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                return "timeout"
        hold_if_stopped()
        if code == 0:
            return "survived"
        # An engine test that hits an assertion of its own dies of a signal.
        python = command[0] == sys.executable
        failed = code == TESTS_FAILED if python else code != SKIPPED
        return "caught" if failed else "invalid"

    def settings(self) -> dict[str, str]:
        """Sources change faster than the clock of byte code tells."""
        ours = {"PYTHONPATH": str(self.place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        ours["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        if "WARPZONE_ROM" not in os.environ:
            from warpzone import rom

            ours["WARPZONE_ROM"] = str(rom.locate("eu").path)
        return {**os.environ, **ours}

    def planted(self, fault: Fault, seconds: float) -> str:
        """The verdict on one fault; afterwards the copy is as it was."""
        path = self.place / fault.file
        source = path.read_text()
        try:
            path.write_text(fault.planted(source))
            return self.run(fault.tests, seconds)
        finally:
            path.write_text(source)


def scores(faults: Iterable[Fault], results: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Of each package: how many faults there are, and how many had which result."""
    table: dict[str, dict[str, int]] = {}
    for fault in faults:
        row = table.setdefault(fault.package, dict.fromkeys(("faults", *RESULTS, "not run"), 0))
        row["faults"] += 1
        row[results[fault.key]["result"] if fault.key in results else "not run"] += 1
    return table


def written(faults: Sequence[Fault], results: dict[str, Any], out: Path) -> None:
    """Writes the results of the faults that are still listed; those of random changes stay."""
    listed = {fault.key for fault in faults}
    kept = {key: results[key] for key in sorted(results) if key in listed}
    caught = sum(entry["result"] in ("caught", "timeout") for entry in kept.values())
    content = {
        "command": "make mutants",
        "faults": len(faults),
        "run": len(kept),
        "caught": caught,
        "packages": scores(faults, kept),
        "results": kept,
    }
    _save(out, {**_saved(out), **content})


def _saved(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
    return found


def _save(out: Path, content: dict[str, Any]) -> None:
    fresh = out.with_name(out.name + ".new")
    fresh.write_text(json.dumps(content, indent=2) + "\n")
    # Whole at any moment: it may be stopped here.
    fresh.replace(out)


def random_changes(arguments: argparse.Namespace, packages: Sequence[str]) -> int:
    """The other mode: changes that nobody chose."""
    listed = random_mutants.tasks(ROOT, arguments.random, arguments.seed, packages)
    before = _saved(arguments.out).get("random", {})
    results = before.get("results", {}) if before.get("seed") == arguments.seed else {}
    same = random_mutants.equivalents(ROOT)
    known = {
        key
        for key, entry in results.items()
        if not (arguments.again and entry["result"] == "survived" and key not in same)
    }
    todo = [task for task in listed if task.mutation.key not in known]
    if arguments.dry_run:
        print("\n".join(task.mutation.key for task in todo))
        return 0
    everything = random_mutants.tasks(ROOT, arguments.random, arguments.seed)

    def tell(task: random_mutants.Task, entry: dict[str, Any]) -> None:
        results[task.mutation.key] = entry
        print(f"{entry['result']:9} {task.mutation.key} ({entry['seconds']} s)", flush=True)
        part = random_mutants.section(results, same, everything, arguments.seed)
        _save(arguments.out, {**_saved(arguments.out), "random": part})

    with workplace() as place:
        copies = [Copy(ROOT, place / str(number)) for number in range(arguments.jobs)]
        tests = list(dict.fromkeys(test for task in todo for test in task.tests))
        if tests and not arguments.trust:
            result = copies[0].run(tests, 20 * arguments.seconds)
            if result != "survived":
                print(f"without any change the tests end with: {result}", file=sys.stderr)
                return 1
        random_mutants.run(copies, todo, arguments.seconds, tell)
    part = random_mutants.section(results, same, everything, arguments.seed)
    _save(arguments.out, {**_saved(arguments.out), "random": part})
    for package, row in part["packages"].items():
        print(f"{package}: {row}")
    missed = [row for row in part["packages"].values() if (row["score"] or 0.0) < WANTED]
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="packages or PACKAGE/NAME; all if not given")
    parser.add_argument("--dry-run", action="store_true", help="list the faults and end")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of the tests of one fault")
    parser.add_argument("--out", type=Path, default=OUT)
    chance = parser.add_argument_group("random changes")
    chance.add_argument("--random", type=int, metavar="N", help="N changes of each package")
    chance.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    chance.add_argument("--jobs", type=int, default=1, help="copies of the tree (default 1)")
    chance.add_argument("--again", action="store_true", help="those that survived once more")
    chance.add_argument(
        "--trust", action="store_true", help="do not run the tests without a change first"
    )
    arguments = parser.parse_args()
    if arguments.random is not None:
        if unknown := set(arguments.only) - set(random_mutants.PACKAGES):
            parser.error(f"there are no random changes of {', '.join(sorted(unknown))}")
        return random_changes(arguments, arguments.only)
    everything = load()
    check(everything)
    wanted = set(arguments.only)
    faults = [fault for fault in everything if not wanted or {fault.package, fault.key} & wanted]
    if unknown := wanted - {name for fault in faults for name in (fault.package, fault.key)}:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    if arguments.dry_run:
        print("\n".join(fault.key for fault in faults))
        return 0
    results = json.loads(arguments.out.read_text())["results"] if arguments.out.exists() else {}
    with workplace() as place:
        copy = Copy(ROOT, place)
        tests = list(dict.fromkeys(test for fault in faults for test in fault.tests))
        result = copy.run(tests, 10 * arguments.seconds)
        if result != "survived":
            print(f"without any fault the tests end with: {result}", file=sys.stderr)
            return 1
        for fault in faults:
            began = time.monotonic()
            result = copy.planted(fault, arguments.seconds)
            print(f"{result:9} {fault.key} ({time.monotonic() - began:.0f} s)", flush=True)
            results[fault.key] = {"result": result, "date": time.strftime("%Y-%m-%d")}
            written(everything, results, arguments.out)
    ran = [results[fault.key]["result"] for fault in faults]
    missed = [fault.key for fault, result in zip(faults, ran, strict=True) if result == "survived"]
    print(f"{len(ran)} faults, {len(missed)} survived{': ' if missed else ''}{', '.join(missed)}")
    return 1 if missed or "invalid" in ran else 0


if __name__ == "__main__":
    sys.exit(main())
