"""The private cache of translated code: one shared library for each ROM, engine and CPU.

A library is translated and compiled once on the user's machine, under a lock, and published with a
side-car that holds its SHA-256. It is loaded only from a folder that nobody else can write to and
only when that hash matches. Without a compiler the interpreter does the work.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import stat
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from warpzone import _engine
from warpzone.rom import compiler, paths

if TYPE_CHECKING:
    from warpzone._engine import NativeProgram

_LOCK_SECONDS = 600
_COST = "the interpreter is used, which is about 5 times slower"


class NativeError(Exception):
    """Why there is no translated code; one sentence with what to do."""


def load(rom: bytes) -> "NativeProgram | None":
    """The translated program of this ROM, made now if need be; None (with one warning) when only
    the interpreter can run it."""
    try:
        return prepare(rom)
    except NativeError as error:
        warnings.warn(f"No translated code: {error} Until then {_COST}.", RuntimeWarning, 2)
        return None


def prepare(rom: bytes) -> "NativeProgram":
    """Like `load`, but says with NativeError why there is no translated code."""
    if not enabled():
        raise NativeError("WARPZONE_NATIVE=0 switches it off; unset it to use translated code.")
    folder = _private_folder()
    library = folder / f"{key(rom)}.so"
    if (program := _open(library)) is not None:
        return program
    with _locked(library.with_suffix(".lock")):
        # Another process may have built it while this one waited.
        if (program := _open(library)) is not None:
            return program
        _build(rom, library)
        if (program := _open(library)) is not None:
            return program
    raise NativeError(f"{library} was just built but cannot be loaded; please report this.")


def enabled() -> bool:
    return os.environ.get("WARPZONE_NATIVE", "1") != "0"


def key(rom: bytes) -> str:
    """Names the library: the ROM, the engine that translates it, the CPU it is compiled for.

    The compiler is not part of it: code that was built and verified stays good when the compiler
    is upgraded or removed.
    """
    parts = [hashlib.sha256(rom).hexdigest(), _engine.native_abi(), version("warpzone")]
    parts += [platform.system(), *compiler.FLAGS, *cpu_identity()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:40]


def cpu_identity() -> list[str]:
    """What decides which instructions the compiler may use."""
    identity = [platform.machine(), platform.processor()]
    wanted = {"vendor_id", "cpu family", "model", "model name", "flags"}
    wanted |= {"CPU implementer", "CPU part", "Features"}
    with contextlib.suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        identity += [line for line in first.splitlines() if line.split("\t")[0].strip() in wanted]
    return identity


def cached(rom: bytes) -> Path | None:
    """The library of this ROM if it is there, private and undamaged. Builds nothing."""
    try:
        library = _private_folder() / f"{key(rom)}.so"
    except NativeError:
        return None
    return library if _verified(library) else None


def _private_folder() -> Path:
    folder = paths.cache_dir() / "native"
    try:
        paths.make_private(folder)
        info = folder.lstat()
    except OSError as error:
        raise NativeError(f"{folder} cannot be used ({error.strerror}).") from error
    if not stat.S_ISDIR(info.st_mode):
        raise NativeError(f"{folder} is not a folder of its own; remove it.")
    if info.st_uid != os.geteuid():
        raise NativeError(
            f"{folder} belongs to another user; remove it or set WARPZONE_CACHE to a folder of "
            "your own."
        )
    if info.st_mode & 0o022:
        raise NativeError(f"others can write to {folder}; run `chmod 700 {folder}`.")
    return folder


def _verified(library: Path) -> bool:
    try:
        expected = json.loads(library.with_suffix(".json").read_text())["sha256"]
        return bool(hashlib.sha256(library.read_bytes()).hexdigest() == expected)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _open(library: Path) -> "NativeProgram | None":
    if not _verified(library):
        return None
    try:
        return _engine.NativeProgram(str(library))
    except (OSError, RuntimeError, ValueError):
        return None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock that the system releases when the process dies."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NativeError(f"{path} cannot be written ({error.strerror}).") from error
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise NativeError(f"another process holds {path} for too long.") from None
                time.sleep(0.05)
            except OSError as error:
                raise NativeError(f"{path} cannot be locked ({error.strerror}).") from error
        yield
    finally:
        os.close(descriptor)


def _build(rom: bytes, library: Path) -> None:
    """Translates and compiles in a folder of its own, then publishes library and side-car."""
    started = time.perf_counter()
    try:
        _remove_leftovers(library)
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=f".{library.stem}.") as name:
            source, product = Path(name) / "program.c", Path(name) / "program.so"
            source.write_text(_engine.translate(rom))
            used = compiler.compile_shared(source, product)
            product.chmod(0o600)
            side_car = {
                "sha256": hashlib.sha256(product.read_bytes()).hexdigest(),
                "rom": hashlib.sha256(rom).hexdigest(),
                "compiler": used,
                "seconds": round(time.perf_counter() - started, 1),
            }
            paths.publish(product, library)
        text = json.dumps(side_car, indent=1) + "\n"
        paths.write_atomic(library.with_suffix(".json"), text.encode())
    except compiler.CompilerError as error:
        raise NativeError(str(error)) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise NativeError(f"it could not be stored in {library.parent} ({error}).") from error


def _remove_leftovers(library: Path) -> None:
    """What a killed process left behind; the lock on this library is held, so nobody uses it."""
    for leftover in library.parent.glob(f".{library.stem}.*"):
        if leftover.is_dir():
            for file in leftover.iterdir():
                file.unlink(missing_ok=True)
            leftover.rmdir()
        else:
            leftover.unlink(missing_ok=True)
