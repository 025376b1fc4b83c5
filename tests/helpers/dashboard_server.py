"""A dashboard in a process of its own, as users start it, and run folders to look at."""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

TOKEN = "a-token-of-twenty-letters"
#: Seconds until something that must happen counts as not happening; busy machines are slow.
PATIENCE = 120.0
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"


def wait(true: Callable[[], Any], seconds: float = PATIENCE) -> None:
    """Until something is true."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.1)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Dashboard:
    """`warpzone dashboard` on a port of its own; can be stopped and started again."""

    def __init__(self, folder: Path, *flags: str, host: str = "127.0.0.1") -> None:
        self.folder = folder
        self.flags = flags
        self.host = host
        self.port = free_port()
        self.said = folder.parent / f"dashboard-{self.port}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Dashboard:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = [sys.executable, "-m", "warpzone.cli.main", "dashboard", str(self.folder)]
        words += ["--host", self.host, "--port", str(self.port), *self.flags]
        with self.said.open("ab") as log:
            self.process = subprocess.Popen(
                words,
                stdout=log,
                stderr=log,
                env={**os.environ, "WARPZONE_DASHBOARD_TOKEN": TOKEN},
            )
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                if self.get("/health")[0] == 200:
                    return
            except OSError:
                time.sleep(0.1)
            assert self.process.poll() is None, self.log()
        raise AssertionError(self.log())

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def log(self) -> str:
        return self.said.read_text()

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any, bytes]:
        """A request whose path is sent as it is."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            link.putrequest("GET", path, skip_host=bool(headers and "Host" in headers))
            for name, value in (headers or {}).items():
                link.putheader(name, value)
            link.endheaders()
            answer = link.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            link.close()

    def socket(self, origin: str | None = None, **more: Any) -> ClientConnection:
        words: dict[str, Any] = {"max_size": None, "open_timeout": PATIENCE, "legacy": True, **more}
        sent = None if origin is None else Origin(origin)
        link: ClientConnection = connect(f"ws://127.0.0.1:{self.port}/ws", origin=sent, **words)
        return link

    def talk(self, token: str = "") -> Talk:
        return Talk(self.socket(), token)


class Talk:
    """One socket that has said hello."""

    def __init__(self, link: ClientConnection, token: str = "") -> None:
        self.link = link
        self.say({"type": "hello", "token": token})
        self.welcome = json.loads(self.link.recv(timeout=PATIENCE))

    def say(self, message: dict[str, Any]) -> None:
        self.link.send(json.dumps(message))

    def hear(self, kind: str) -> dict[str, Any]:
        """The next message of a kind; pushes are acknowledged."""
        while True:
            data = self.link.recv(timeout=PATIENCE)
            message = json.loads(data) if isinstance(data, str) else unpack(data)
            if message["type"] in ("news", "wall"):
                self.say({"type": "ack"})
            if message["type"] == kind:
                return message

    def ask(self, message: dict[str, Any], kind: str) -> dict[str, Any]:
        self.say({**message, "request": 1})
        return self.hear(kind)

    def run(self) -> str:
        """The id of the first run."""
        self.say({"type": "watch", "runs": []})
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            news = self.hear("news")
            if news.get("runs"):
                return str(news["runs"][0]["id"])
        raise AssertionError("no run is listed")


def unpack(data: bytes) -> dict[str, Any]:
    size = struct.unpack("<I", data[:4])[0]
    return {**json.loads(data[4 : 4 + size]), "payload": data[4 + size :]}


def make_run(folder: Path, name: str = "one", rows: int = 50) -> Path:
    """A run folder with numbers, as training leaves it."""
    run = folder / name
    run.mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"stages": "1-1", "max_steps": 100_000}))
    metrics = [
        {"update": n, "global_step": 100 * n, "seconds": n / 2, "entropy": 2 - n / rows}
        for n in range(1, rows + 1)
    ]
    write_rows(run / "metrics.jsonl", metrics)
    episodes = [
        {
            "lane": n % 4,
            "stage": 0,
            "start_delay": n % 31,
            "episode_return": 1.5 * n,
            "steps": 40,
            "furthest_x": 300 + n,
            "global_step": 100 * n,
            "reason": "flag" if n % 5 == 0 else "death",
        }
        for n in range(20)
    ]
    write_rows(run / "episodes.jsonl", episodes)
    return run


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
