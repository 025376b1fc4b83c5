"""Commands to a live run, through its folder: `control/` is the inbox, one file for each
command, `control.jsonl` records each command, its sender, its time and its result, and
`control/state.json` holds the state of the run. Nothing here depends on training or the network."""

from __future__ import annotations

import json
import math
import re
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warpzone.run.files import append_text, own_folder, replace_unflushed, write_text
from warpzone.run.names import ANSWERS, CONTROL, STATE
from warpzone.run.opening import listing, open_file, parse_json, read_json
from warpzone.run.reader import is_run

#: Commands with a number, and its bounds. Without a number the schedule applies again.
BOUNDS = {"entropy": (0.0, 0.2), "lr": (1e-7, 1e-2)}
PLAIN = ("pause", "resume", "save", "stop", "evaluate", "video")
#: A command file is a few dozen bytes; more than this is not one.
MAX_BYTES = 4096
#: Commands that may wait in an inbox.
MAX_WAITING = 32
#: Permissions of the inbox: a user who can write there controls the run.
PRIVATE = 0o700

_ID = re.compile(r"[0-9a-f]{32}")
_WHO = re.compile(r"[\w .@:+\-\[\]]{1,80}")


class CommandError(ValueError):
    """A command that cannot be executed; one sentence says why."""


@dataclass(frozen=True)
class Command:
    """A command to a run."""

    id: str
    who: str
    when: float
    what: str
    value: float | None = None

    @classmethod
    def new(cls, who: str, what: str, value: float | None = None) -> Command:
        """A checked command, with the current time."""
        return check(cls(uuid.uuid4().hex, who, time.time(), what, value))

    def __str__(self) -> str:
        if self.what not in BOUNDS:
            return self.what
        return f"{self.what}={'schedule' if self.value is None else f'{self.value:g}'}"


def check(command: Command) -> Command:
    """Refuses invalid commands. The sender and the run both call this."""
    if not isinstance(command.id, str) or not _ID.fullmatch(command.id):
        raise CommandError("a command needs an id of 32 hexadecimal digits")
    if not isinstance(command.who, str) or not _WHO.fullmatch(command.who):
        raise CommandError("the sender must be 1 to 80 letters, digits, spaces and . @ : + - [ ]")
    if not _is_number(command.when):
        raise CommandError("a command needs the time it was given")
    if not isinstance(command.what, str):
        raise CommandError("a command must be one word")
    if command.what in BOUNDS:
        low, high = BOUNDS[command.what]
        value = command.value
        if value is not None and not (_is_number(value) and low <= value <= high):
            raise CommandError(f"{command.what} must be a number in {low:g}..{high:g}")
    elif command.what not in PLAIN:
        known = ", ".join((*PLAIN, *BOUNDS))
        raise CommandError(f"unknown command; commands are {known}")
    elif command.value is not None:
        raise CommandError(f"{command.what} takes no value")
    return command


def send(run: Path, command: Command) -> None:
    """Puts a command into the inbox of a run. It appears there whole or not at all."""
    inbox = run / CONTROL
    if not is_run(run):
        raise CommandError("there is no such run")
    own_folder(inbox, PRIVATE)
    if len(_waiting(run)) >= MAX_WAITING:
        raise CommandError(f"{MAX_WAITING} commands are waiting already; is the run still alive?")
    write_text(inbox / f"{command.id}.json", json.dumps(asdict(check(command))))


def take(run: Path) -> tuple[list[Command], list[str]]:
    """Removes and returns the waiting commands, oldest first, and a sentence for every file that
    is not a command."""
    commands: list[Command] = []
    refused: list[str] = []
    for path in _waiting(run):
        try:
            commands.append(_read(run, path))
        except CommandError as error:
            refused.append(f"{path.name}: {error}")
        path.unlink(missing_ok=True)
    return sorted(commands, key=lambda command: command.when), refused


def answer(run: Path, command: Command, result: str, message: str, **more: Any) -> None:
    """Records the result of a command: `done`, `refused` or `failed`."""
    row = {**asdict(command), "answered": time.time(), "result": result, "message": message, **more}
    append_text(run / ANSWERS, json.dumps(row) + "\n")


def write_state(run: Path, state: dict[str, Any]) -> None:
    """Writes the state of the run. Replaced atomically, but not flushed: after a crash the state
    is worthless."""
    folder = run / CONTROL
    own_folder(folder, PRIVATE)
    replace_unflushed(folder / STATE, json.dumps(state).encode())


def read_state(run: Path) -> dict[str, Any]:
    """The last state that the run wrote; empty if it wrote none."""
    return read_json(run, Path(CONTROL) / STATE)


def _waiting(run: Path) -> list[Path]:
    paths = [run / file.name for file in listing(run, CONTROL, (".json",))]
    return [path for path in paths if _ID.fullmatch(path.stem)]


def _read(run: Path, path: Path) -> Command:
    try:
        with open_file(run, path.relative_to(run)) as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise CommandError("too large for a command")
        command = Command(**parse_json(data))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, CommandError):
            raise
        raise CommandError("not a command") from error
    if command.id != path.stem:
        raise CommandError("the id is not that of the file")
    return check(command)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
