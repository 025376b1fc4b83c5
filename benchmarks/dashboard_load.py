"""What four browsers with the wall on cost a run: training with and without them, in turns.

    python benchmarks/dashboard_load.py --rounds 9 --updates 6 --out benchmarks/dashboard_load.json

One run is kept alive, with a dashboard beside it as `--dashboard` starts it. In every other round
four clients in a process of their own do what the page does: acknowledge all news, take every clip
of the wall, and ask for twelve curves, stages, episodes and log whenever there is something new.
The result is the median over rounds of the ratio of speeds, by the wall clock; the target is a loss
below 3 %. The clients run on the same machine, at low priority; browsers usually do not.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

CLIENTS = 4
CURVES = (
    *("clear_rate", "avg_return", "env_mean_x_pos", "env_max_x_pos", "entropy", "loss_value"),
    *("loss_policy", "approx_kl", "learning_rate", "entropy_bonus", "grad_norm", "time_learn"),
)
PARTS = ("stages", "episodes", "log", "answers", "checkpoints")
TARGET = 0.03
CHANGES: dict[str, Any] = {
    "max_steps": 10**7,
    "eval_interval": 0,
    "stop_at": 0.0,
    "checkpoint_minutes": 0.0,
    "checkpoint_interval": 0,
    "dashboard": True,
    "dashboard_port": 0,
}


# --- browsers ------------------------------------------------------------------------------------
def browse(url: str, counts: dict[str, int]) -> None:
    """One client, until its process ends."""
    from websockets.sync.client import connect

    with connect(url, max_size=None) as link:
        link.send(json.dumps({"type": "hello"}))
        link.recv()
        link.send(json.dumps({"type": "watch", "runs": []}))
        run = ""
        while True:
            data = link.recv()
            if isinstance(data, bytes):
                kind = "wall" if b'"type": "wall"' in data[:100_000] else "curves"
            else:
                message = json.loads(data)
                kind = message["type"]
            counts[kind] = counts.get(kind, 0) + 1
            counts["bytes"] = counts.get("bytes", 0) + len(data)
            if kind in ("news", "wall"):
                link.send(json.dumps({"type": "ack"}))
            if kind == "news" and not run and message.get("runs"):
                run = message["runs"][0]["id"]
                link.send(json.dumps({"type": "watch", "runs": [run], "wall": True}))
            elif kind == "news" and run:
                asked = {"type": "curves", "runs": [run], "names": CURVES, "request": 1}
                link.send(json.dumps({**asked, "points": 600}))
                for what in PARTS:
                    part = {"type": "part", "run": run, "what": what, "request": 2}
                    link.send(json.dumps(part))


def clients(url: str) -> int:
    """Four of them; says what they were sent when standard input ends. They stand for browsers on
    other machines, and so take what is left of this one."""
    os.nice(19)
    counts: dict[str, int] = {}
    for _ in range(CLIENTS):
        threading.Thread(target=browse, args=(url, counts), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(counts), flush=True)
    # Threads wait for the server; nothing of theirs is worth keeping.
    os._exit(0)


class Browsers:
    """The process of the clients."""

    def __init__(self, url: str, run: Path) -> None:
        self.run = run
        words = [sys.executable, __file__, "--clients", url]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def close(self) -> dict[str, int]:
        """Ends them, and removes the request for pictures."""
        said, _ = self.process.communicate("")
        (self.run / "wall" / "wanted").unlink(missing_ok=True)
        counts: dict[str, int] = json.loads(said.splitlines()[-1])
        return counts


# --- training ------------------------------------------------------------------------------------
class Quiet:
    """A display that shows nothing."""

    def update(self, row: dict[str, Any]) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


def _cpu_seconds(served: Any) -> float:
    """Of the dashboard's process, where the system tells."""
    path = Path(f"/proc/{served.process.pid}/stat")
    if not path.exists():
        return float("nan")
    user, system = path.read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure(rounds: int, updates: int, changes: dict[str, Any]) -> dict[str, Any]:
    """Alternating rounds; the order changes with every pair."""
    from warpzone.bench.machine import describe
    from warpzone.config import load_preset
    from warpzone.observers.dashboard import DashboardObserver
    from warpzone.observers.make import make_observers
    from warpzone.train.loop import Run

    with tempfile.TemporaryDirectory() as folder:
        config = load_preset("quick").replace(**CHANGES, **changes, runs_dir=folder, run_name="run")
        observers = make_observers(config)
        served = next(one for one in observers if isinstance(one, DashboardObserver))
        run = Run(config, observers)
        for observer in observers:
            observer.started(run)
        url = f"ws://127.0.0.1:{served.port}/ws"

        def play() -> tuple[float, float, float]:
            """Seconds by the wall clock, of CPU time here, and of CPU time in the server."""
            began = time.perf_counter(), time.process_time(), _cpu_seconds(served)
            for _ in range(updates):
                run.update(run.driver.play, Quiet())  # type: ignore[arg-type]
            ended = time.perf_counter(), time.process_time(), _cpu_seconds(served)
            wall, here, there = (b - a for a, b in zip(began, ended, strict=True))
            return wall, here, there

        play()
        times: dict[str, list[tuple[float, float, float]]] = {"with": [], "without": []}
        sent: list[dict[str, int]] = []
        for number in range(rounds):
            for kind in ("with", "without") if number % 2 else ("without", "with"):
                browsers = Browsers(url, run.folder.path) if kind == "with" else None
                times[kind].append(play())
                if browsers is not None:
                    sent.append(browsers.close())
        for observer in observers:
            observer.ended(run, "normal")
        run.close()
    steps = updates * config.steps_per_update
    pairs = list(zip(times["without"], times["with"], strict=True))
    ratios = [without[0] / attached[0] for without, attached in pairs]
    return {
        "machine": describe(),
        "clients": CLIENTS,
        "lanes": config.num_envs,
        "wall_lanes": config.wall_lanes,
        "rounds": rounds,
        "updates_per_round": updates,
        "steps_per_sec_without": round(steps / median(row[0] for row in times["without"]), 1),
        "steps_per_sec_with": round(steps / median(row[0] for row in times["with"]), 1),
        "speed_ratio_median": round(median(ratios), 4),
        "speed_ratios": [round(ratio, 4) for ratio in ratios],
        "loss": round(1 - median(ratios), 4),
        "target": TARGET,
        # Steadier than the wall clock where others use the machine too.
        "training_cpu_ratio": round(median(b[1] / a[1] for a, b in pairs), 4),
        "server_cpu_share_of_a_core": round(median(b[2] / b[0] for _, b in pairs), 4),
        "sent_in_last_round": sent[-1],
    }


def main() -> int:
    """0 if the target is met."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--updates", type=int, default=6, help="updates in a round")
    parser.add_argument("--num-envs", type=int, help="lanes (default: those of the preset)")
    parser.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--clients", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.clients:
        return clients(args.clients)
    changes: dict[str, Any] = {"device": args.device}
    if args.num_envs:
        changes["num_envs"] = args.num_envs
    result = measure(args.rounds, args.updates, changes)
    text = json.dumps(result, indent=2)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 0 if result["loss"] < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
