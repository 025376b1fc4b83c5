"""Where the members of a population that was stopped are, from what they wrote down."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpzone.config import ConfigError
from warpzone.run.files import remove_leftovers
from warpzone.run.lock import BusyError, RunLock
from warpzone.run.names import CONFIG, POPULATION, SWEEP
from warpzone.run.opening import parse_json
from warpzone.search.lineage import FORMAT, MEMBERS, read_member
from warpzone.search.space import Space, differences

#: Seconds that members of a killed population get to end, and between two looks at them.
GRACE, LOOK = 30.0, 0.2


@dataclass(frozen=True)
class Standing:
    """A population as its members left it. Ray's own notes are not used: they may be older."""

    #: The settings of each member; None has not begun.
    settings: tuple[dict[str, Any] | None, ...]
    #: Sessions of which all members are to report the value next; 0 in a new population.
    report: int
    #: Whether no member has anything left to do.
    finished: bool

    @property
    def begun(self) -> bool:
        """Whether there is anything to go on with."""
        return any(settings is not None for settings in self.settings)


def values(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The values of a member, one for each session: one that was repeated after a kill counts
    once."""
    found = {(row["run"], row["step"]): row for row in rows if row["event"] == "value"}
    return list(found.values())


def read_standing(folder: Path, members: int) -> Standing:
    """Of a population's folder, new or not."""
    files = [folder / MEMBERS / f"{number:02d}.jsonl" for number in range(members)]
    rows = [read_member(file) for file in files]
    going = [own for own in rows if not _done(own)]
    sessions = min((len(values(own)) for own in going), default=0)
    # Members wait for each other: who has trained on, or is to begin another run, has exchanged.
    exchanged = any(len(values(own)) > sessions for own in rows)
    exchanged = exchanged or any(own[-1]["event"] == "begin" for own in rows if own)
    settings = (own[-1]["settings"] if own else None for own in rows)
    begun = any(rows)
    report = sessions if sessions and not exchanged else sessions + 1
    return Standing(tuple(settings), report if begun else 0, not going)


def _done(rows: list[dict[str, Any]]) -> bool:
    return bool(rows) and bool(rows[-1].get("done"))


def require_same(folder: Path, space: Space, members: int, exchange: int) -> None:
    """ConfigError unless there is nothing in the folder, or a population that can be gone on
    with."""
    taken = f"{folder} exists already; give the population another name"
    if (folder / CONFIG).exists() or (folder / SWEEP).exists():
        raise ConfigError(taken)
    try:
        kept = parse_json((folder / POPULATION).read_bytes())
    except FileNotFoundError:
        return
    except ValueError as error:
        raise ConfigError(taken) from error
    if not isinstance(kept, dict) or "space" not in kept:
        raise ConfigError(taken)
    if kept.get("format") != FORMAT:
        raise ConfigError(
            f"{folder} is a population of format {kept.get('format')!r}, and this version writes "
            f"{FORMAT}; give this one another name"
        )
    differing = differences(kept["space"], json.loads(json.dumps(space.identity())))
    if differing:
        raise ConfigError(
            f"{folder} is a population of another space ({', '.join(differing)} differ); give this "
            "one another name"
        )
    for name, here in (("members", members), ("exchange", exchange)):
        if kept.get(name) != here:
            raise ConfigError(
                f"{folder} is a population with --{name} {kept.get(name)}; go on with that, or "
                "give this one another name"
            )


def hold(folder: Path) -> RunLock:
    """The population's folder for this process alone, once the members of a killed one have ended.
    ConfigError if somebody trains in it."""
    try:
        lock = RunLock(folder)
    except BusyError as error:
        raise ConfigError(f"another process is training the population {folder}") from error
    end = time.monotonic() + GRACE
    for run in sorted(path.parent for path in folder.glob("member-*/" + CONFIG)):
        while True:
            try:
                RunLock(run).close()
                break
            except BusyError:
                if time.monotonic() > end:
                    lock.close()
                    raise
                time.sleep(LOOK)
    # Of one that was killed while it wrote.
    remove_leftovers(folder)
    return lock
