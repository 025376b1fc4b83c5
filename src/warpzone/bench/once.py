"""Costs that are paid once: construction, memory, translation, import."""

import json
import os
import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import Any

from warpzone.bench.workload import Lanes, Setup
from warpzone.rom import native

MANY = 1024
_IMPORT = """
import sys, time
t = time.perf_counter()
import warpzone
print(time.perf_counter() - t, "torch" in sys.modules)
"""


def construction(rom: bytes, repeats: int) -> dict[str, Any]:
    """Seconds to make 1,024 lanes (the ROM has been used before) and what they hold."""
    setup = Setup(lanes=MANY)
    times = []
    held = 0
    for _ in range(repeats):
        started = time.perf_counter()
        lanes = Lanes(rom, setup)
        times.append(time.perf_counter() - started)
        held = lanes.memory_bytes()
        lanes.close()
    return {"lanes": MANY, "construction_s": median(times), "memory_mib": held / 2**20}


def import_time(repeats: int) -> dict[str, Any]:
    """Seconds of `import warpzone` in a fresh interpreter."""
    times, torch = [], False
    for _ in range(repeats):
        done = subprocess.run(  # noqa: S603 - our own interpreter and text
            [sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True
        )
        seconds, has_torch = done.stdout.split()
        times.append(float(seconds))
        torch |= has_torch == "True"
    return {"import_s": median(times), "imports_torch": torch}


def translation_time(rom: bytes, measure: bool) -> dict[str, Any]:
    """Seconds to translate and compile the ROM: as the cache recorded it, or measured now."""
    if not measure:
        library = native.cached(rom)
        if library is None:
            return {"translation_s": None}
        return {"translation_s": json.loads(library.with_suffix(".json").read_text())["seconds"]}
    before = os.environ.get("WARPZONE_CACHE")
    with tempfile.TemporaryDirectory(prefix="warpzone-bench-") as folder:
        os.environ["WARPZONE_CACHE"] = folder
        try:
            started = time.perf_counter()
            native.prepare(rom)
            return {"translation_s": time.perf_counter() - started}
        finally:
            del os.environ["WARPZONE_CACHE"]
            if before is not None:
                os.environ["WARPZONE_CACHE"] = before
