"""The ledger: one line of JSON for each measurement, so that numbers can be compared later."""

import json
import os
from pathlib import Path
from typing import Any

from warpzone.rom.paths import data_dir
from warpzone.run.files import append_text


def ledger_path() -> Path:
    """Where measurements are kept: $WARPZONE_LEDGER, or beside the user's ROMs."""
    value = os.environ.get("WARPZONE_LEDGER")
    return Path(value).expanduser() if value else data_dir() / "ledger.jsonl"


def add(result: dict[str, Any], path: Path | None = None) -> Path:
    """Adds a measurement to a ledger, the user's by default. Returns which one it was."""
    path = ledger_path() if path is None else path
    path.parent.mkdir(parents=True, exist_ok=True)
    append_text(path, json.dumps(result) + "\n")
    return path
