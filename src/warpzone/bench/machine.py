"""The machine of a measurement."""

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from warpzone import _engine

_INTERESTING = ("avx2", "bmi2", "avx512f", "avx512bw", "avx512vl", "avx512_vbmi")


def describe() -> dict[str, Any]:
    """Machine, CPU and versions; nothing that names a user or a host."""
    name, flags = _cpu()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": name,
        "cpu_flags": [flag for flag in _INTERESTING if flag in flags],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "load": load(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "simd_levels": list(_engine.SIMD_LEVELS),
        **{name.replace("-", "_"): _version(name) for name in ("warpzone", "numpy", "nes-py")},
    }


def load() -> float | None:
    """How many processes wanted a core in the last minute; on an idle machine, those of the
    measurement itself."""
    return round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None


def _cpu() -> tuple[str, set[str]]:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor(), set()
    fields: dict[str, str] = {}
    for line in info.read_text().split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    family = f"family {fields.get('cpu family', '?')} model {fields.get('model', '?')}"
    return f"{fields.get('model name', '')} {family}".strip(), set(fields.get("flags", "").split())


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
