"""Kills a training run again and again, at random moments and often in the middle of a checkpoint,
and resumes it each time. At the end nothing may be lost, torn or there twice, and the weights and
everything else in the last checkpoint (optimiser, games, archive, replay, random numbers) must be
those of a run that was not killed. Whatever a life resumes from must be what the checkpoint holds.
Prints the result as JSON; exit code 1 if anything is wrong.

Each life is `warpzone train` in a process of its own, forked from this one after the imports, which
would take longer than the life itself.

`--device cuda` records CUDA graphs and uses CUDA's deterministic kernels. What they leave open is
measured by two runs that are not killed: if these are the same bit for bit, the killed one must be
too; else its weights may differ from theirs by a few times what theirs differ by."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # The optimiser wants it, and it takes seconds.
from killing.comparing import (
    FACTOR,
    check_restores,
    compare,
    identical,
    judge_beside,
    whole_rows,
)
from killing.lives import BrokenError, Life, seed_generators
from killing.settings import INTERVAL, KINDS, settings_of

from warpzone.bench.machine import describe
from warpzone.cli.main import main as main_of_warpzone
from warpzone.config import TrainConfig
from warpzone.observers.make import make_observers  # noqa: F401 (imported before the forks)
from warpzone.observers.observer import Observer
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.files import TEMPORARY
from warpzone.run.folder import load_config
from warpzone.run.sidecar import read_sidecar
from warpzone.train.estimate import count_memory
from warpzone.train.loop import Run

#: CUDA must not be touched before a fork, not even by the question whether there is any; and its
#: libraries must not choose by what else the GPU does.
CUDA_ENVIRONMENT = {
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}
#: One life in this many ends before it has made its first update.
EARLY = 6
#: Seconds after the first update within which a life ends; on CUDA longer, if so many updates take
#: longer there.
LATEST_KILL = 0.6
UPDATES_OF_A_LIFE = 12
PATIENCE = 120.0
#: Kills between two lines about how far it is.
NEWS = 10


class Victim:
    """One run, killed and resumed."""

    def __init__(self, runs: Path, seed: int, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.folder = runs / "victim"
        self.metrics = self.folder / "metrics.jsonl"
        self.runs = runs
        self.log = runs / "victim.log"
        self.interval = INTERVAL
        self.chance = random.Random(seed)
        self.startup = 1.0
        #: Seconds after the first update of a life within which it ends.
        self.span = LATEST_KILL
        #: Seconds of all lives after their first updates.
        self.lived = 0.0
        #: Where lives write down what they resumed from, if they are to check it.
        self.resumed: Path | None = None
        self.newest = 0
        self.inside = 0
        self.early = 0

    def start(self) -> Life:
        words = ["train"]
        for name, value in self.settings.items():
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, str(value)]
        words += ["--runs-dir", str(self.runs), "--run-name", "victim", "--resume", "auto"]

        def train() -> int:
            sys.argv = ["warpzone", *words]
            if self.resumed is not None:
                check_restores(self.resumed)
            return main_of_warpzone(words)

        return Life(train, self.log)

    def measure(self) -> None:
        """One life, to learn how long starts and updates take; then a kill."""
        began = time.monotonic()
        process = self.start()
        self.wait_for_rows(process, 1)
        self.startup = time.monotonic() - began
        self.wait_for_rows(process, 1 + UPDATES_OF_A_LIFE)
        self.lived = time.monotonic() - began - self.startup
        self.span = max(LATEST_KILL, self.lived)
        process.end(signal.SIGKILL)

    def wait_for_rows(self, process: Life, count: int) -> None:
        until = time.monotonic() + PATIENCE
        while len(whole_rows(self.metrics)) < count:
            if time.monotonic() > until:
                process.end(signal.SIGKILL)
                raise BrokenError("a life made no update: " + self.last_words())
            self.wait(process, 0.02)

    def life(self, early: bool) -> None:
        """From a start to a kill."""
        before = self.size()
        began = time.monotonic()
        process = self.start()
        if early:
            self.wait(process, self.chance.uniform(0.0, self.startup))
            self.early += 1
        else:
            while self.size() <= before:
                if time.monotonic() - began > PATIENCE:
                    process.end(signal.SIGKILL)
                    raise BrokenError("a life made no update: " + self.last_words())
                self.wait(process, 0.02)
            self.startup = 0.7 * self.startup + 0.3 * (time.monotonic() - began)
            seconds = self.chance.uniform(0.0, self.span)
            self.lived += seconds
            self.wait(process, seconds)
        process.end(signal.SIGKILL)

    def wait(self, process: Life, seconds: float) -> None:
        time.sleep(seconds)
        if process.poll() is not None:
            raise BrokenError(f"it ended by itself with {process.code}: {self.last_words()}")

    def size(self) -> int:
        return self.metrics.stat().st_size if self.metrics.is_file() else 0

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-600:]

    def examine(self) -> None:
        """After a kill: the latest is readable, not more than an interval is lost, and what the
        life resumed from was the checkpoint."""
        checkpoints = Checkpoints(self.folder / "checkpoints")
        updates = [row["update"] for row in whole_rows(self.metrics)]
        if updates != list(range(1, len(updates) + 1)):
            raise BrokenError(f"rows of metrics are missing or there twice: {updates[-5:]}")
        latest = checkpoints.latest()
        newest = 0
        if latest:
            sidecar = read_sidecar(latest[0])
            found = checkpoints.open(sidecar.stem)
            found.verify()
            found.read_state()
            newest = sidecar.global_update
        if newest < max(self.newest, len(updates) - self.interval):
            raise BrokenError(f"{len(updates)} updates were made, and the latest is of {newest}")
        self.newest = newest
        for row in self.resumptions():
            if row["differing"] or row["notes"]:
                raise BrokenError(f"it did not resume from what the checkpoint holds: {row}")
        stems = checkpoints.stems()
        half = any(TEMPORARY.fullmatch(path.name) for path in checkpoints.folder.glob(".*"))
        named = stems and latest and read_sidecar(latest[0]).stem == stems[0]
        whole = stems and (checkpoints.folder / f"{stems[0]}.json").is_file()
        self.inside += bool(half or (stems and not (named and whole)))

    def resumptions(self) -> list[dict[str, Any]]:
        return whole_rows(self.resumed) if self.resumed is not None else []

    def finish(self) -> int:
        """A last process that ends cleanly, when there is an episode to compare; returns its
        number of updates."""
        process = self.start()
        before, began = self.size(), time.monotonic()
        episodes = self.folder / "episodes.jsonl"
        while (self.size() <= before or not whole_rows(episodes)) and (
            time.monotonic() - began < PATIENCE
        ):
            self.wait(process, 0.05)
        code = process.end(signal.SIGTERM)
        if code != 128 + signal.SIGTERM:
            raise BrokenError(f"SIGTERM ended it with {code}: {self.last_words()}")
        return len(whole_rows(self.metrics))


def straight(runs: Path, updates: int, name: str = "straight") -> Path:
    """The same run without any kill."""

    class Enough(Observer):
        def between(self, run: Any, progress: Any) -> None:
            if run.global_update >= updates:
                run.stop("enough")

    class Silent:
        def update(self, row: dict[str, Any]) -> None: ...
        def say(self, text: str) -> None: ...

    seed_generators()
    config = load_config(runs / "victim").replace(run_name=name, checkpoint_interval=0)
    run = Run(config, [Enough()])
    run.learn(Silent())  # type: ignore[arg-type]
    run.save()
    run.close()
    return run.folder.path


def unkilled(runs: Path, updates: int, names: list[str], patience: float) -> list[Path]:
    """The same run without any kill, so many times at once, each in a process of its own."""
    log = runs / "unkilled.log"

    def work(name: str) -> Callable[[], int]:
        return lambda: int(not straight(runs, updates, name).is_dir())

    lives = [Life(work(name), log) for name in names]
    until = time.monotonic() + patience
    while any(life.poll() is None for life in lives) and time.monotonic() < until:
        time.sleep(0.05)
    if codes := [code for life in lives if (code := life.end(signal.SIGKILL))]:
        raise BrokenError(f"an unkilled run ended with {codes[0]}: {log.read_text()[-600:]}")
    return [runs / name for name in names]


def judge(victim: Victim, updates: int, patience: float, device: str) -> dict[str, Any]:
    """The killed run beside unkilled ones."""
    cuda = device == "cuda"
    names = ["straight", "again"] if cuda else ["straight"]
    folders = unkilled(victim.runs, updates, names, patience)
    found = compare(victim.folder, folders[0])
    if not cuda:
        return found | {"ok": identical(found)}
    allowed = compare(folders[1], folders[0])
    judged = {"ok": judge_beside(found, allowed), "unkilled_runs_are_identical": identical(allowed)}
    return {**found, **judged, "factor": FACTOR, "two_unkilled_runs": allowed}


def run(
    kills: int, seed: int, kind: str, runs: Path, device: str = "cpu", minutes: float = 0.0
) -> dict[str, Any]:
    """minutes: about so many in all, with fewer kills if need be; 0 is no limit."""
    torch.set_num_threads(1)
    os.environ["MARIO_ALLOW_CPU_AUTO"] = "1"
    os.environ.pop("RUN_NAME", None)
    settings = settings_of(kind, device)
    # Loads what it needs of PyTorch, before the forks.
    count_memory(TrainConfig(**{**settings, "device": "cpu"}))
    victim = Victim(runs, seed, settings)
    victim.resumed = runs / "resumed.jsonl"
    began = time.monotonic()
    result: dict[str, Any] = {"kills": 0, "seed": seed, "kind": kind, "device": device}

    def rest() -> float:
        """Seconds for what comes after the last kill: an end, and all updates again."""
        return 3 * victim.startup + 2 * victim.lived

    try:
        if device == "cuda":
            victim.measure()
            victim.examine()
            result["kills"] = 1
        while result["kills"] < kills:
            if minutes and time.monotonic() - began + rest() > 60 * minutes:
                break
            victim.life(early=result["kills"] % EARLY == EARLY - 1)
            victim.examine()
            result["kills"] += 1
            if result["kills"] % NEWS == 0:
                news = f"[kill-test] {result['kills']} kills, {victim.newest} updates, "
                news += f"{victim.inside} inside checkpoint writes, a start takes "
                news += f"{victim.startup:.1f} s; {time.monotonic() - began:.0f} s"
                print(news, file=sys.stderr, flush=True)
        updates = victim.finish()
        victim.examine()
        result |= {"updates": updates, **judge(victim, updates, PATIENCE + 2 * rest(), device)}
    except BrokenError as broken:
        result |= {"ok": False, "broken": str(broken)}
    words = f"scripts/kill_test.py --kind {kind} --kills {kills} --seed {seed}"
    if device != "cpu":
        words += f" --device {device}"
    if minutes:
        words += f" --minutes {minutes:g}"
    return result | {
        "settings": settings,
        "kills_inside_checkpoint_writes": victim.inside,
        "kills_before_the_first_update": victim.early,
        "resumed_with_what_the_checkpoint_holds": len(victim.resumptions()),
        "seconds_of_a_start": round(victim.startup, 2),
        "seconds": round(time.monotonic() - began, 1),
        "command": words,
        "machine": describe(),
    }


def with_cuda() -> None:
    """Starts this script again with what PyTorch and CUDA read when they are loaded."""
    if any(os.environ.get(name) != value for name, value in CUDA_ENVIRONMENT.items()):
        environment = {**os.environ, **CUDA_ENVIRONMENT}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often to kill the run")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument(
        "--kind", choices=KINDS, default="stateful", help="PPO alone, or archive, replay … as well"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="end after about so many, with fewer kills"
    )
    parser.add_argument("--out", type=Path, help="also write the result to this file")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    args = parser.parse_args()
    if args.dry_run:
        where = f"; result to {args.out}" if args.out else ""
        print(
            f"would kill a {args.kind} run on {args.device} {args.kills} times (moments of seed "
            f"{args.seed}){where}"
        )
        return 0
    if args.device == "cuda":
        with_cuda()
    runs = Path(tempfile.mkdtemp(prefix="kill-test-"))
    try:
        result = run(args.kills, args.seed, args.kind, runs, args.device, args.minutes)
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
