"""A dashboard beside a run: a low-priority process that ends with the run."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
from pathlib import Path

from warpzone.config import ConfigError
from warpzone.config.dashboard import LEAST_TOKEN, TOKEN, DashboardConfig, address, missing
from warpzone.observers.observer import ObservedRun, Observer
from warpzone.run.files import open_plain, own_folder
from warpzone.run.names import LOGS

#: Niceness of the dashboard's process.
NICE = 19
LOCAL = ("127.0.0.1", "::1", "localhost")
LOG = "dashboard.log"
#: Seconds between two looks whether the server listens.
POLL = 0.1


class DashboardObserver(Observer):
    """Starts `warpzone dashboard` for the folder of all runs, and ends it."""

    def __init__(self, config: DashboardConfig) -> None:
        if sentence := missing():
            raise ConfigError(sentence)
        given = os.environ.get(TOKEN, "")
        self.token = given or secrets.token_urlsafe(24)
        #: The user who set the token knows it; it is not printed.
        self.shown = not given
        if len(self.token) < LEAST_TOKEN:
            raise ConfigError(f"{TOKEN} needs at least {LEAST_TOKEN} characters")
        self.host = config.dashboard_host
        self.port = _free_port(self.host, config.dashboard_port)
        self.control = config.control
        self.metrics = config.dashboard_metrics
        self.process: subprocess.Popen[bytes] | None = None
        self._over = threading.Event()
        #: Waits for the server, so that training need not.
        self.announcing = threading.Thread()

    def started(self, run: ObservedRun) -> None:
        words = [sys.executable, "-m", "warpzone.cli.main", "dashboard", run.config.runs_dir]
        words += ["--host", self.host, "--port", str(self.port), "--with-parent"]
        words += ["--control"] if self.control else []
        words += ["--metrics"] if self.metrics else []
        logs = run.folder.path / LOGS
        own_folder(logs)
        with os.fdopen(open_plain(logs / LOG, os.O_WRONLY | os.O_APPEND), "ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
                words,
                stdin=subprocess.PIPE,  # closed when this process ends in any way
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**os.environ, TOKEN: self.token},
            )
        os.setpriority(os.PRIO_PROCESS, self.process.pid, NICE)
        self.announcing = threading.Thread(
            target=self._announce, args=(self.process, logs / LOG), daemon=True
        )
        self.announcing.start()

    def _announce(self, process: subprocess.Popen[bytes], log: Path) -> None:
        """Prints the address as soon as something listens there."""
        while not _listens(self.host, self.port):
            if process.poll() is not None:
                if not self._over.is_set():
                    _say(f"[dashboard][warn] it did not start; see {log}")
                return
            if self._over.wait(POLL):
                return
        url = address(self.host, self.port)
        if self.control or self.host not in LOCAL:
            url += f"#token={self.token}" if self.shown else f" (the token is that of {TOKEN})"
        _say(f"[dashboard] {url}")

    def ended(self, run: ObservedRun, reason: str) -> None:
        if self.process is None:
            return
        self._over.set()
        self.announcing.join()
        self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _listens(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


def _free_port(host: str, port: int) -> int:
    """The port if it is free; for 0, any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    except OSError as error:
        raise ConfigError(
            f"the dashboard cannot listen on {host}:{port} ({error.strerror}); "
            "choose another --dashboard-port"
        ) from error
