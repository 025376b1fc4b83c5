"""What folders of diagnostics say: which environments were made, how long that took, and where the
others hang. Folders of before there were events have the workers' files alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpzone.env.backends.events import EVENTS
from warpzone.run.opening import parse_json
from warpzone.stability.report import printable

LOGS = "env_init_idx*_pid*.log"
_NAME = re.compile(r"env_init_idx(\d+)_pid(\d+)\.log")
_MARKER = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z (.*)$")
_FRAME = re.compile(r'^ +File "(.*)", line (\d+) in (.*)$')
#: Bytes that are read of a file.
MOST = 1 << 22


def folders(path: Path) -> list[Path]:
    """The folders of diagnostics at or below a path."""
    found = {file.parent for file in [*path.rglob(EVENTS), *path.rglob(LOGS)]}
    return sorted(found)


def digest(folder: Path) -> dict[str, Any]:
    """One folder. Environments are counted from 1."""
    envs: dict[int, dict[str, Any]] = {}
    for event in _events(folder):
        number = event.get("env")
        if not isinstance(number, int):
            continue
        env = envs.setdefault(number, {"env": number, "lost": []})
        kind, text = event.get("kind"), str(event.get("text", ""))
        if kind == "ready":
            env["seconds"] = event.get("seconds")
        elif kind == "lost":
            env["lost"].append(text.partition("; diagnostics are in ")[0])
        elif kind == "marker":
            env["last_marker"] = text
    for number, stack in _stacks(folder, envs):
        envs[number]["stack"] = stack
    rows = [envs[number] for number in sorted(envs)]
    return {"folder": str(folder), "envs": rows}


def describe(found: dict[str, Any]) -> str:
    """The same in a few lines."""
    envs = found["envs"]
    times = [env["seconds"] for env in envs if isinstance(env.get("seconds"), int | float)]
    lines = [f"{found['folder']}: {len(times)} of {len(envs)} environments were made"]
    if times:
        lines[0] += (
            f", in {min(times):.2f} s to {max(times):.2f} s (mean {sum(times) / len(times):.2f} s)"
        )
    for env in envs:
        failed = "seconds" not in env or env["lost"]
        if not failed:
            continue
        lines.append(f"  env {env['env']}: last marker {env.get('last_marker', 'none')}")
        lines += [f"    lost: {text}" for text in env["lost"]]
        lines += [f"    in {frame}" for frame in env.get("stack", [])]
    return "\n".join(map(printable, lines))


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / EVENTS
    if path.is_file():
        for line in _text(path).splitlines():
            try:
                event = parse_json(line)
            except ValueError:
                # Cut off by the end of its process, or no event at all.
                continue
            if isinstance(event, dict):
                yield event
        return
    for path in sorted(folder.glob(LOGS), key=lambda path: path.stat().st_mtime):
        name = _NAME.fullmatch(path.name)
        for line in _text(path).splitlines():
            marked = _MARKER.match(line)
            if name is not None and marked is not None:
                yield {"kind": "marker", "env": int(name[1]) + 1, "text": marked[1]}


def _stacks(folder: Path, envs: dict[int, dict[str, Any]]) -> Iterator[tuple[int, list[str]]]:
    """The innermost frames of the stack that the newest process of each worker wrote, if it did.
    A worker's file has the number of its lane, which is that of its environment less those of
    other groups."""
    first = min(envs, default=1) if (folder / EVENTS).is_file() else 1
    for path in sorted(folder.glob(LOGS), key=lambda path: path.stat().st_mtime):
        name = _NAME.fullmatch(path.name)
        frames = [_FRAME.match(line) for line in _text(path).splitlines()]
        shown = [f"{Path(frame[1]).name}:{frame[2]} {frame[3]}" for frame in frames if frame]
        if name is not None and shown and first + int(name[1]) in envs:
            yield first + int(name[1]), shown[:5]


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST).decode(errors="replace")
