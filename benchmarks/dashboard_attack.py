"""A dashboard under attack beside training: whether it still answers, what it costs the run, and
whether rows are lost.

    python benchmarks/dashboard_attack.py --minutes 10 --out benchmarks/dashboard_attack.json

One run is kept alive, with a dashboard beside it as `--dashboard` starts it. Windows with and
without attack take turns, so that whatever else the machine does hits both; --minutes is the time
under attack. A second process, at low priority (it stands for other machines), attacks with
everything at once: floods of requests, of messages and of empty frames; clients that send a byte a
second; bombs (runs with compressed parts, lines and nesting without end, messages of a MiB, huge
headers); wrong tokens; and 500 sockets that are held open. A third asks for /health four times a
second, all the time, with a connection of its own each time.

The server stands back behind everything else (niceness 19). Where others keep the machine busy it
gets next to nothing, attacked or not; --server-nice N, which needs root, says what it would do with
its share. The file of --out gets one result for each measurement. `cpu_share` says what server and
attackers used of a core: unlike speed it hardly depends on what else the machine does.
"""

import argparse
import asyncio
import contextlib
import gzip
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

SOCKETS = 500
#: Of each kind of attacker.
COPIES = {"requests": 8, "messages": 4, "frames": 4, "slow": 100, "huge": 4, "tokens": 2}
TARGETS = {"health_p99_seconds": 1.0, "loss": 0.03}
CHANGES: dict[str, Any] = {
    "num_envs": 16,
    "minibatch": 256,
    "max_steps": 10**9,
    "eval_interval": 0,
    "stop_at": 0.0,
    "checkpoint_minutes": 1.0,
    "dashboard": True,
    "dashboard_port": 0,
}
UPGRADE = (
    "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


# --- attackers -----------------------------------------------------------------------------------
def frame(data: bytes, kind: int = 0x81) -> bytes:
    """A frame as a browser sends it."""
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2)
    return bytes([kind]) + size + b"\0\0\0\0" + data


HELLO = frame(b'{"type": "hello"}')
WATCH = b'{"type": "watch", "runs": [], "wall": true}'


class Attack:
    """All attackers; `on` and `off` in turns."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.counts: Counter[str] = Counter()
        self.tasks: list[asyncio.Task[None]] = []

    def on(self) -> None:
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            name: getattr(self, name) for name in COPIES
        }
        for name, copies in COPIES.items():
            for _ in range(copies):
                self.tasks.append(asyncio.create_task(self.again(kinds[name], 0.1)))
        for _ in range(SOCKETS):
            self.tasks.append(asyncio.create_task(self.again(self.held, 1.0)))

    async def off(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks = []

    async def again(self, attack: Callable[[], Awaitable[None]], pause: float) -> None:
        """Whatever the server does, it is attacked again."""
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, EOFError):
                await attack()
            self.counts["connections that ended"] += 1
            await asyncio.sleep(pause)

    @contextlib.asynccontextmanager
    async def link(self) -> Any:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def requests(self) -> None:
        words = f"GET /page/app.js HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode()
        async with self.link() as (reader, writer):
            while True:
                writer.write(words * 10)
                await writer.drain()
                if not await reader.read(1 << 20):
                    return
                self.counts["requests"] += 10

    async def upgrade(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(UPGRADE.format(port=self.port).encode())
        if b" 101 " not in await reader.readuntil(b"\r\n\r\n"):
            self.counts["sockets refused"] += 1
            raise EOFError

    @contextlib.asynccontextmanager
    async def socket(self) -> Any:
        async with self.link() as (reader, writer):
            await self.upgrade(reader, writer)
            writer.write(HELLO)
            yield reader, writer

    async def messages(self) -> None:
        bodies = (b'{"type": "ack"}', WATCH, b"nonsense", b"[" * 2000)
        async with self.socket() as (reader, writer):
            for number in range(4000):
                writer.write(frame(bodies[number % (1 if number < 2000 else len(bodies))]))
                self.counts["messages"] += 1
                await writer.drain()
            while await reader.read(1 << 16):
                pass

    async def frames(self) -> None:
        async with self.socket() as (reader, writer):
            writer.write(frame(b"", 0x01))
            for kind in (0x00, 0x89, 0x8A) * 100:
                writer.write(frame(b"", kind) * 100)
                self.counts["empty frames"] += 100
                await writer.drain()
            while await reader.read(1 << 16):
                pass

    async def slow(self) -> None:
        async with self.link() as (_, writer):
            for byte in UPGRADE.format(port=self.port).encode():
                writer.write(bytes([byte]))
                await writer.drain()
                self.counts["bytes of slow clients"] += 1
                await asyncio.sleep(1)

    async def huge(self) -> None:
        async with self.socket() as (reader, writer):
            data = b"x" * (1 << 20)
            writer.write(b"\x81\xff" + len(data).to_bytes(8) + b"\0\0\0\0" + data)
            self.counts["messages of a MiB"] += 1
            await writer.drain()
            while await reader.read(1 << 16):
                pass
        async with self.link() as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (1 << 20))
            self.counts["headers of a MiB"] += 1
            while await reader.read(1 << 16):
                pass

    async def tokens(self) -> None:
        async with self.link() as (reader, writer):
            await self.upgrade(reader, writer)
            writer.write(frame(b'{"type": "hello", "token": "a wrong token of some length"}'))
            self.counts["wrong tokens"] += 1
            await reader.read(1 << 16)

    async def held(self) -> None:
        """Looks at all runs, the bombs too, and says nothing more."""
        async with self.socket() as (reader, writer):
            writer.write(frame(WATCH))
            self.counts["sockets held open"] += 1
            while await reader.read(1 << 16):
                pass


async def attack(port: int) -> None:
    """By the words of standard input, one a line; says what was sent when it ends."""
    attacker = Attack(port)
    loop = asyncio.get_running_loop()
    while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        if word == "on":
            attacker.on()
        else:
            await attacker.off()
        print("done", flush=True)
    print(json.dumps(attacker.counts), flush=True)


def probe(port: int, out: Path) -> None:
    """A line for each question: when, seconds, and whether the answer was right."""
    with out.open("w", buffering=1) as file:
        while True:
            began, right = time.monotonic(), False
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            with contextlib.suppress(OSError, http.client.HTTPException):
                link.request("GET", "/health")
                right = link.getresponse().read() == b"ok\n"
            link.close()
            took = time.monotonic() - began
            file.write(json.dumps([began, took, right]) + "\n")
            time.sleep(max(0.0, 0.25 - took))


def plant_bombs(runs: Path) -> None:
    """Runs from somebody who means harm."""
    config = json.dumps({"stages": "1-1", "max_steps": 10})
    row = b'{"update": 1, "global_step": 1}\n'
    for name, files in {
        "zip": {"metrics-0001.jsonl.gz": gzip.compress(b" " * (200 << 20)), "metrics.jsonl": row},
        "line": {"metrics.jsonl": b'{"a": "' + b"x" * (30 << 20)},
        "deep": {"metrics.jsonl": b"[" * (1 << 20) + b"\n" + row},
        "rows": {"metrics.jsonl": b'{"update": NaN, "global_step": 1e999}\n' * 200_000},
    }.items():
        (runs / name).mkdir()
        (runs / name / "config.json").write_text(config)
        for file, content in files.items():
            (runs / name / file).write_bytes(content)
    (runs / "pipe").mkdir()
    (runs / "pipe" / "config.json").write_text(config)
    os.mkfifo(runs / "pipe" / "metrics.jsonl")


# --- training ------------------------------------------------------------------------------------
class Quiet:
    """A display that shows nothing."""

    def update(self, row: dict[str, Any]) -> None:
        """Nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


class Helper:
    """Attackers or the prober in a process of their own."""

    def __init__(self, *words: str, nice: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.nice(nice) and None,
        )

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        self.process.stdout.readline()

    def end(self) -> dict[str, int]:
        said, _ = self.process.communicate("\n", timeout=120)
        return dict(json.loads(said.splitlines()[-1]))


def seconds_of(times: list[float]) -> dict[str, float]:
    if not times:
        return {}
    names = {"p50": 50, "p95": 95, "p99": 99, "largest": 100}
    return {name: round(float(np.percentile(times, share)), 4) for name, share in names.items()}


def measure(minutes: float, window: float, nice: int | None) -> dict[str, Any]:
    """Pairs of windows; the order changes with every pair."""
    from warpzone.bench.machine import describe
    from warpzone.config import load_preset
    from warpzone.observers.dashboard import NICE, DashboardObserver
    from warpzone.observers.make import make_observers
    from warpzone.run.reader import read_rows
    from warpzone.train.loop import Run

    os.environ["MARIO_ALLOW_CPU_AUTO"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        plant_bombs(Path(folder))
        config = load_preset("quick").replace(**CHANGES, runs_dir=folder, run_name="run")
        observers = make_observers(config)
        served = next(one for one in observers if isinstance(one, DashboardObserver))
        run = Run(config, observers)
        for observer in observers:
            observer.started(run)
        served.announcing.join()
        assert served.process is not None
        if nice is not None:
            os.setpriority(os.PRIO_PROCESS, served.process.pid, nice)
        asked = Path(folder) / "asked"
        prober = Helper("--probe", str(served.port), str(asked), nice=0)
        attackers = Helper("--attack", str(served.port), nice=19)

        def play(seconds: float) -> tuple[float, float, float, float]:
            """Updates a second and a CPU second, and when it began and ended."""
            began, here, count = time.monotonic(), time.process_time(), 0
            while time.monotonic() - began < seconds:
                run.update(run.driver.play, Quiet())  # type: ignore[arg-type]
                count += 1
            ended = time.monotonic()
            return count / (ended - began), count / (time.process_time() - here), began, ended

        play(min(window, 10.0))
        rates: dict[str, list[tuple[float, float, float, float]]] = {"with": [], "without": []}
        spent = {kind: {"server": 0.0, "attackers": 0.0} for kind in rates}
        pids = {"server": served.process.pid, "attackers": attackers.process.pid}
        peak = 0.0
        for number in range(max(2, round(minutes * 60 / window))):
            for kind in ("with", "without") if number % 2 else ("without", "with"):
                attackers.say("on" if kind == "with" else "off")
                before = {name: cpu_seconds(pid) for name, pid in pids.items()}
                rates[kind].append(play(window))
                for name, pid in pids.items():
                    spent[kind][name] += cpu_seconds(pid) - before[name]
                attackers.say("off")
                peak = max(peak, memory(served.process.pid))
        alive = served.process.poll() is None
        sent = attackers.end()
        prober.process.send_signal(signal.SIGKILL)
        prober.process.wait()
        answers = [json.loads(line) for line in asked.read_text().splitlines()]
        log = (run.folder.path / "logs" / "dashboard.log").read_text()
        for observer in observers:
            observer.ended(run, "normal")
        run.close()
        updates = [int(row["update"]) for row in read_rows(run.folder.path, "metrics.jsonl")]
        made = run.global_update
    health = {
        kind: [
            (took, right)
            for at, took, right in answers
            if any(began <= at < ended for _, _, began, ended in rates[kind])
        ]
        for kind in rates
    }
    pairs = list(zip(rates["without"], rates["with"], strict=True))
    ratios = [attacked[0] / free[0] for free, attacked in pairs]
    cpu = [attacked[1] / free[1] for free, attacked in pairs]
    return {
        "machine": describe(),
        "command": f"benchmarks/dashboard_attack.py --minutes {minutes:g} --window {window:g}"
        + ("" if nice is None else f" --server-nice {nice}"),
        "niceness": {"server": NICE if nice is None else nice, "training": os.nice(0)},
        "minutes_under_attack": round(sum(e - b for _, _, b, e in rates["with"]) / 60, 2),
        "windows": len(pairs),
        "health": {
            kind: {
                "questions": len(found),
                "wrong_or_no_answer": sum(not right for _, right in found),
                "seconds": seconds_of([took for took, _ in found]),
            }
            for kind, found in health.items()
        },
        "speed_ratios": [round(ratio, 4) for ratio in ratios],
        "speed_ratio_median": round(median(ratios), 4),
        "speed_ratio_interval": [round(end, 4) for end in interval(ratios)],
        # What an update costs this process: others on the machine take time, not work.
        "updates_per_cpu_second_ratio_median": round(median(cpu), 4),
        "updates_per_cpu_second_ratio_interval": [round(end, 4) for end in interval(cpu)],
        "cpu_share": {
            kind: {
                name: round(seconds / sum(e - b for _, _, b, e in rates[kind]), 4)
                for name, seconds in used.items()
            }
            for kind, used in spent.items()
        },
        "updates": made,
        "rows": len(updates),
        "rows_lost": len(set(range(1, made + 1)) - set(updates)),
        "server_alive": alive,
        "server_tracebacks": log.count("Traceback"),
        # The last line of each.
        "server_errors": Counter(re.findall(r"^[\w.]+(?:Error|Exception|Disconnect)\b", log, re.M)),
        "server_peak_mib": round(peak, 1),
        "sent": sent,
        "targets": {**TARGETS, "rows_lost": 0},
    }


def interval(values: list[float]) -> tuple[float, float]:
    """95 % of the medians of values drawn again (bootstrap)."""
    draws = np.random.default_rng(0).choice(values, (4000, len(values)))
    low, high = np.percentile(np.median(draws, axis=1), (2.5, 97.5))
    return float(low), float(high)


def memory(pid: int) -> float:
    """MiB of a process."""
    return (
        int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
    )


def cpu_seconds(pid: int) -> float:
    """Of a process, until now."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """0 if the dashboard answered and no row was lost; speed is reported."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0, help="under attack")
    parser.add_argument("--window", type=float, default=30.0, help="seconds of a window")
    parser.add_argument("--server-nice", type=int, help="niceness of the server instead of 19")
    parser.add_argument("--out", type=Path, help="a JSON list that the result is added to")
    parser.add_argument("--attack", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--probe", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.attack:
        asyncio.run(attack(args.attack))
        return 0
    if args.probe:
        probe(int(args.probe[0]), Path(args.probe[1]))
        return 0
    result = measure(args.minutes, args.window, args.server_nice)
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        before = json.loads(args.out.read_text()) if args.out.is_file() else []
        args.out.write_text(json.dumps([*before, result], indent=1) + "\n")
    attacked = result["health"]["with"]["seconds"]["p99"]
    good = result["rows_lost"] == 0 and attacked < TARGETS["health_p99_seconds"]
    return 0 if good and result["speed_ratio_median"] > 1 - TARGETS["loss"] else 1


if __name__ == "__main__":
    sys.exit(main())
