"""Code, packages and machine of a run, for each start."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import warpzone
from warpzone.run.files import write_text
from warpzone.run.names import VERSIONS
from warpzone.run.opening import read_json
from warpzone.run.sidecar import now

PACKAGES = ("torch", "numpy", "safetensors", "gymnasium", "rich", "tyro")
#: Largest number of recorded starts.
MOST_SESSIONS = 200


def add_session(folder: Path, device: torch.device, rom: bytes, start: dict[str, Any]) -> None:
    """Adds this start; `start` describes the checkpoint it resumed from."""
    path = folder / VERSIONS
    sessions = read_sessions(folder)
    sessions.append({"timestamp": now(), **start, **_versions(device, rom)})
    write_text(path, json.dumps({"sessions": sessions[-MOST_SESSIONS:]}, indent=1) + "\n")


def read_sessions(folder: Path) -> list[dict[str, Any]]:
    """The starts so far, oldest first; empty if the file cannot be read."""
    sessions = read_json(folder, VERSIONS).get("sessions")
    return list(sessions) if isinstance(sessions, list) else []


def _versions(device: torch.device, rom: bytes) -> dict[str, Any]:
    there = device.type == "cuda"
    return {
        "warpzone": warpzone.__version__,
        "commit": commit(Path(__file__).parents[3]),
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "platform": platform.platform(),
        "machine": platform.node(),
        "device": torch.cuda.get_device_name(device) if there else "cpu",
        "cuda": torch.version.cuda if there else None,
        "rom_sha256": hashlib.sha256(rom).hexdigest(),
        "command": sys.argv,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def commit(checkout: Path) -> str | None:
    """The commit of a source checkout; None for an installed package."""
    git = checkout / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        name = head.removeprefix("ref: ")
        loose = git / name
        if loose.is_file():
            return loose.read_text().strip()
        packed = (git / "packed-refs").read_text().splitlines()
    except OSError:
        return None
    return next((line.split()[0] for line in packed if line.endswith(" " + name)), None)
