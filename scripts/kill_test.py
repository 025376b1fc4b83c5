"""Kills a training run again and again, at random moments and often in the middle of a checkpoint,
and resumes it each time. At the end nothing may be lost, torn or there twice, and the weights and
everything else in the last checkpoint (optimiser, games, archive, replay, random numbers) must be
those of a run that was not killed. Prints the result as JSON; exit code 1 if anything is wrong.

Each life is `warpzone train` in a process of its own, forked from this one after the imports, which
would take longer than the life itself."""

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
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._dynamo  # The optimiser wants it, and it takes seconds.

from warpzone.bench.machine import describe
from warpzone.cli.main import main as main_of_warpzone
from warpzone.config import TrainConfig
from warpzone.eval.weights import find_agent
from warpzone.observers.make import make_observers  # noqa: F401 (imported before the forks)
from warpzone.observers.observer import Observer
from warpzone.run.checkpoints import Checkpoints
from warpzone.run.files import TEMPORARY
from warpzone.run.folder import load_config
from warpzone.run.sidecar import read_sidecar
from warpzone.train.estimate import count_memory
from warpzone.train.loop import Run

#: One update takes a few hundredths of a second, and each is followed by a checkpoint.
INTERVAL = 1
SETTINGS: dict[str, Any] = {
    "num_envs": 4,
    "groups": 2,
    "num_threads": 1,
    "rollout_steps": 8,
    "minibatch": 16,
    "epochs": 1,
    "size": 36,
    "encoder_width": 0.125,
    "hidden_size": 16,
    "stagnation_limit": 20,
    "max_steps": 32 * 100_000,
    "device": "cpu",
    "checkpoint_interval": INTERVAL,
    "keep_every": 0,
    "wall_lanes": 0,
}
#: What a checkpoint holds beside weights, optimiser and games.
STATEFUL: dict[str, Any] = {
    "algo": "vtrace",
    "stages": "1-1,1-2,4-1",
    "curriculum": "progress",
    "archive_share": 0.5,
    "archive_explore": 0.3,
    "archive_size": 32,
    "memory": "lstm",
    "per": True,
    "per_segments": 4,
    "per_memory_gb": 0.001,
}
KINDS = {"plain": SETTINGS, "stateful": {**SETTINGS, **STATEFUL}}
#: What a checkpoint holds about clocks, and about who observed the run.
CLOCKS = ("seconds", "observers")
#: One life in this many ends before it has made its first update.
EARLY = 6
#: Seconds after the first update within which a life ends.
LATEST_KILL = 0.6
PATIENCE = 120.0


class BrokenError(Exception):
    """What must not happen."""


def seed_generators() -> None:
    """A fork seeds Python's own generator anew. Nothing in training draws from it, but it is part
    of a checkpoint, and so is to be the same in both runs."""
    random.seed(1)
    np.random.seed(1)


class Life:
    """A process that trains."""

    def __init__(self, words: list[str], log: Path) -> None:
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
                os.dup2(handle, 1)
                os.dup2(handle, 2)
                sys.argv = ["warpzone", *words]
                seed_generators()
                code = main_of_warpzone(words)
                sys.stdout.flush()
                sys.stderr.flush()
            except BaseException:  # As the interpreter would.
                traceback.print_exc()
                raise
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it lives."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def end(self, number: signal.Signals) -> int:
        """Sends a signal and waits for the end."""
        if self.code is None:
            os.kill(self.pid, number)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code


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
        self.newest = 0
        self.inside = 0
        self.early = 0

    def start(self) -> Life:
        words = ["train"]
        for name, value in self.settings.items():
            flag = "--" + name.replace("_", "-")
            words += [flag] if value is True else [flag, str(value)]
        words += ["--runs-dir", str(self.runs), "--run-name", "victim", "--resume", "auto"]
        return Life(words, self.log)

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
            self.wait(process, self.chance.uniform(0.0, LATEST_KILL))
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
        """After a kill: the latest is readable, and not more than an interval is lost."""
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
        stems = checkpoints.stems()
        half = any(TEMPORARY.fullmatch(path.name) for path in checkpoints.folder.glob(".*"))
        named = stems and latest and read_sidecar(latest[0]).stem == stems[0]
        whole = stems and (checkpoints.folder / f"{stems[0]}.json").is_file()
        self.inside += bool(half or (stems and not (named and whole)))

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


def whole_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a file; only the last line may be torn, and only until the next start."""
    if not path.is_file():
        return []
    lines = path.read_text().split("\n")
    return [json.loads(line) for line in lines[:-1]]


def straight(runs: Path, updates: int) -> Path:
    """The same run without any kill."""

    class Enough(Observer):
        def between(self, run: Any, progress: Any) -> None:
            if run.global_update >= updates:
                run.stop("enough")

    class Silent:
        def update(self, row: dict[str, Any]) -> None: ...
        def say(self, text: str) -> None: ...

    seed_generators()
    config = load_config(runs / "victim").replace(run_name="straight", checkpoint_interval=0)
    run = Run(config, [Enough()])
    run.learn(Silent())  # type: ignore[arg-type]
    run.save()
    run.close()
    return run.folder.path


def same(first: Any, second: Any) -> bool:
    """Whether two parts of a checkpoint are one, bit for bit."""
    if type(first) is not type(second):
        return False
    if isinstance(first, torch.Tensor):
        alike = first.dtype == second.dtype and first.shape == second.shape
        return alike and bool(first.numpy().tobytes() == second.numpy().tobytes())
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(same(a, b) for a, b in pairs)
    return bool(first == second)


def contents(state: dict[str, Any]) -> dict[str, int]:
    """How much of what makes a run stateful there was to lose."""
    guide, replay = state["collector"]["guide"], state["replay"]
    return {
        "moments_in_the_archive": len(guide["archive"]["numbers"]),
        "starts_from_the_archive": sum(moment[2] for moment in guide["archive"]["numbers"]),
        "stages_of_the_curriculum": len(guide["curriculum"]["episodes"]),
        "segments_in_the_replay": len(replay["storage"]["serials"]) if replay else 0,
        "samples_of_the_replay": replay["samples"] if replay else 0,
    }


def compare(killed: Path, untouched: Path) -> dict[str, Any]:
    """The last checkpoints bit for bit, and what was written down of episodes."""
    stems = [Checkpoints(folder / "checkpoints").stems()[0] for folder in (killed, untouched)]
    agents = [
        find_agent(folder / "checkpoints" / stem).agent.state_dict()
        for folder, stem in zip((killed, untouched), stems, strict=True)
    ]
    states = [
        Checkpoints(folder / "checkpoints").open(stem).read_state()
        for folder, stem in zip((killed, untouched), stems, strict=True)
    ]
    differing = [
        name
        for name in states[0]
        if name not in CLOCKS and not same(states[0][name], states[1][name])
    ]
    names = ("global_step", "lane", "episode_return", "steps", "furthest_x")
    episodes = [
        [[row[name] for name in names] for row in whole_rows(folder / "episodes.jsonl")]
        for folder in (killed, untouched)
    ]
    return {
        "same_update": stems[0] == stems[1],
        "same_weights": all(torch.equal(agents[0][name], agents[1][name]) for name in agents[0]),
        "same_state": not differing,
        "same_episodes": episodes[0] == episodes[1] and bool(episodes[0]),
        "parts_of_the_state": sorted(states[0].keys() - set(CLOCKS)),
        "differing_parts": differing,
        "at_the_end": contents(states[0]),
    }


def run(kills: int, seed: int, kind: str, runs: Path) -> dict[str, Any]:
    torch.set_num_threads(1)
    os.environ["MARIO_ALLOW_CPU_AUTO"] = "1"
    os.environ.pop("RUN_NAME", None)
    settings = KINDS[kind]
    count_memory(TrainConfig(**settings))  # Loads what it needs of PyTorch, before the forks.
    victim = Victim(runs, seed, settings)
    began = time.monotonic()
    result: dict[str, Any] = {"kills": 0, "seed": seed, "kind": kind}
    try:
        for number in range(kills):
            victim.life(early=number % EARLY == EARLY - 1)
            victim.examine()
            result["kills"] = number + 1
        updates = victim.finish()
        victim.examine()
        result |= {"updates": updates, **compare(victim.folder, straight(runs, updates))}
        result["ok"] = all(value for name, value in result.items() if name.startswith("same_"))
    except BrokenError as broken:
        result |= {"ok": False, "broken": str(broken)}
    words = f"scripts/kill_test.py --kind {kind} --kills {kills} --seed {seed}"
    return result | {
        "settings": settings,
        "kills_inside_checkpoint_writes": victim.inside,
        "kills_before_the_first_update": victim.early,
        "seconds": round(time.monotonic() - began, 1),
        "command": words,
        "machine": describe(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often to kill the run")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument(
        "--kind", choices=KINDS, default="stateful", help="PPO alone, or archive, replay … as well"
    )
    parser.add_argument("--out", type=Path, help="also write the result to this file")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and stop")
    args = parser.parse_args()
    if args.dry_run:
        where = f"; result to {args.out}" if args.out else ""
        print(
            f"would kill a {args.kind} run {args.kills} times (moments of seed {args.seed}){where}"
        )
        return 0
    runs = Path(tempfile.mkdtemp(prefix="kill-test-"))
    try:
        result = run(args.kills, args.seed, args.kind, runs)
    finally:
        shutil.rmtree(runs, ignore_errors=True)
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
