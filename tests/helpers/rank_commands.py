"""`warpzone train` in processes that are ranks of one small run, and what is seen of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

COMMAND = [sys.executable, "-m", "warpzone.cli.main", "train"]
#: Lanes that end often, and a checkpoint after every update.
SMALL = [
    *("--preset", "quick", "--device", "cpu", "--num-envs", "4", "--groups", "2"),
    *("--rollout-steps", "8", "--minibatch", "16", "--epochs", "1", "--hidden-size", "16"),
    *("--size", "36", "--encoder-width", "0.125", "--stagnation-limit", "3"),
    *("--eval-interval", "0", "--checkpoint-interval", "1", "--num-threads", "1"),
    *("--monitor-interval", "0", "--wall-lanes", "0", "--run-name", "one"),
]
ENDLESS = ["--max-steps", "100000000", "--max-time", "60"]
#: Seconds in which a busy machine has started two ranks, or ended them.
PATIENCE = 240.0
#: Seconds in which the loss of a rank ends the others. docs/scaling.md says 10, and other tests may
#: keep this machine busy.
LOST_WITHIN = 30.0


def start(
    folder: Path,
    *words: str,
    command: Sequence[str] = COMMAND,
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """The command with a small run in a folder."""
    return subprocess.Popen(
        [*command, *SMALL, "--runs-dir", str(folder), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(variables or {})},
    )


def wait_for_update(folder: Path, update: int = 2) -> None:
    """Until the run has a checkpoint of so many updates."""
    ends = time.monotonic() + PATIENCE
    while not list((folder / "one" / "checkpoints").glob(f"*_{update:07d}.json")):
        assert time.monotonic() < ends, "there is no checkpoint"
        time.sleep(0.1)


@contextmanager
def ended_within(seconds: float) -> Iterator[None]:
    """What is done in the block takes no longer."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def last_words(process: subprocess.Popen[str]) -> list[str]:
    """What it said about its end."""
    _, said = process.communicate(timeout=PATIENCE)
    return [line for line in said.splitlines() if line.startswith(("warpzone train:", "rank "))]


def listening(process: psutil.Process) -> set[str]:
    """Addresses that a process listens on."""
    found = process.net_connections(kind="inet")
    return {one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}


def free_port() -> str:
    """One that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])
