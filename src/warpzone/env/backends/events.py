"""What happens while environments are made, and to their workers later: a sentence for people and
a row for programs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

#: The file of all processes in a folder of diagnostics.
EVENTS = "events.jsonl"


@dataclass(frozen=True)
class Event:
    """One event."""

    #: constructing, ready, lost; of diagnostics also marker.
    kind: str
    text: str
    #: The environment, counted from 1 over all groups, and how many there are.
    env: int | None = None
    of: int | None = None
    #: How long it took.
    seconds: float | None = None
    timestamp: float = field(default_factory=time.time)
    pid: int = field(default_factory=os.getpid)

    def row(self) -> dict[str, Any]:
        """As JSON; what it does not have is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


Report = Callable[[Event], None]


def say(event: Event) -> None:
    """Tells people."""
    print(f"[env] {event.text}", file=sys.stderr, flush=True)


def constructing(env: int, of: int) -> Event:
    """An environment is about to be made."""
    return Event("constructing", f"constructing env {env}/{of}", env, of)


def ready(env: int, of: int, seconds: float) -> Event:
    """It is there."""
    text = f"env {env}/{of} ready in {seconds:.2f} s"
    return Event("ready", text, env, of, round(seconds, 3))


@contextlib.contextmanager
def construction(env: int, of: int, report: Report | None) -> Iterator[None]:
    """Says which environment is being made, and how long it took."""
    began = time.monotonic()
    if report is not None:
        report(constructing(env, of))
    yield
    if report is not None:
        report(ready(env, of, time.monotonic() - began))


def append(folder: Path, event: Event) -> None:
    """Adds an event to a folder of diagnostics. Lines of several processes stay apart: each is one
    short write to the end of the file."""
    line = json.dumps(event.row()) + "\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    handle = os.open(folder / EVENTS, flags, 0o644)
    try:
        os.write(handle, line.encode())
    finally:
        os.close(handle)
