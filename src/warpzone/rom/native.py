"""Translated code: compiled into a private cache, or emitted into memory where that cannot be.

The cache holds one shared library for each ROM, engine and CPU.
A library is translated and compiled once on the user's machine, under a lock, and published with a
side-car that holds its seal: a hash made with a key that only the user can read. It is loaded only
from a folder that no other user can write to or replace, from the descriptor that was verified, and
only when the seal is right. Without a compiler the engine's own emitter makes machine code in
memory (x86-64), and where it cannot the interpreter is used.
"""

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import platform
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from warpzone import _engine
from warpzone.rom import compiler, paths, trusted
from warpzone.rom.waiting import loading

if TYPE_CHECKING:
    from warpzone._engine import NativeProgram

_LOCK_SECONDS = 600
_KEY, _KEY_BYTES = "seal.key", 32
#: Far larger than any library.
_MOST_BYTES = 256 << 20
_ONCE = "once on this machine; it takes about 10 seconds, a minute or two beside other work"
_COST = "the interpreter is used, which is about 5 times slower"
_INSTEAD = "Emitted code is used instead."


#: NROM without a program: enough to ask whether the emitter works here.
_EMPTY = b"NES\x1a\x02\x01" + bytes(10 + 0x8000 + 0x2000)


class NativeError(Exception):
    """Why there is no translated code; one sentence with what to do."""


class _NoCompilerError(NativeError):
    """Nothing is wrong but that there is no compiler."""


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
    if emits():
        return emit(rom)
    try:
        return _compiled(rom)
    except NativeError as error:
        try:
            program = emit(rom)
        except NativeError as refusal:
            raise NativeError(f"{error} {refusal}") from error
        if not isinstance(error, _NoCompilerError):
            # Emitted code is as good, but something is wrong on this machine.
            warnings.warn(f"No compiled code: {error} {_INSTEAD}", RuntimeWarning, 3)
        return program


def ready(rom: bytes) -> "NativeProgram | None":
    """Translated code that can be had at once: compiled before, or emitted; never waits."""
    if not enabled():
        return None
    if not emits() and cached(rom) is not None:
        return load(rom)
    try:
        return emit(rom)
    except NativeError:
        return None


def emit(rom: bytes) -> "NativeProgram":
    """Machine code in memory, made now by the engine's own emitter."""
    try:
        return _engine.emit(rom)
    except RuntimeError as error:
        raise NativeError(f"Nor can it be emitted: {error}.") from error


def emitter_refusal() -> str | None:
    """Why no machine code can be emitted here; None where it can."""
    try:
        _engine.emit(_EMPTY)
    except RuntimeError as error:
        return str(error)
    return None


def will_run(rom: bytes) -> tuple[Literal["compiled", "to compile", "emitted", "none"], str]:
    """Which code plays this ROM, and its file or the reason. Makes nothing."""
    if not enabled():
        return "none", "switched off by WARPZONE_NATIVE=0"
    why = "WARPZONE_NATIVE=emitted"
    if not emits():
        if library := cached(rom):
            return "compiled", str(library)
        try:
            compiler.find()
            return "to compile", "not yet compiled"
        except compiler.NoCompilerError:
            why = "there is no compiler"
        except compiler.CompilerError as error:
            why = str(error).rstrip(".")
    if refusal := emitter_refusal():
        return "none", refusal
    return "emitted", f"emitted in memory when it is loaded, because {why}"


def _compiled(rom: bytes) -> "NativeProgram":
    with _private_folder() as place:
        library = place.path / f"{key(rom)}.so"
        if (program := _open(place, library)) is not None:
            return program
        with _locked(place, library.with_suffix(".lock")):
            # Another process may have built it while this one waited.
            if (program := _open(place, library)) is not None:
                return program
            _build(rom, place, library)
            if (program := _open(place, library)) is not None:
                return program
    raise NativeError(f"{library} was just built but cannot be loaded; please report this.")


def enabled() -> bool:
    """Whether translated code may be used at all."""
    return _chosen() != "0"


def emits() -> bool:
    """Whether the user wants emitted code even where there is a compiler."""
    return _chosen() == "emitted"


def _chosen() -> str:
    chosen = os.environ.get("WARPZONE_NATIVE") or "1"
    if chosen not in ("0", "1", "emitted"):
        raise ValueError(f"WARPZONE_NATIVE is 0, 1 or emitted, not {chosen!r}.")
    return chosen


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
        with _private_folder() as place:
            library = place.path / f"{key(rom)}.so"
            handle = _verified(place, library)
    except NativeError:
        return None
    if handle is None:
        return None
    os.close(handle)
    return library


@dataclass(frozen=True)
class _Place:
    """The cache's folder, and the descriptor that everything in it is opened from."""

    path: Path
    handle: int


@contextlib.contextmanager
def _private_folder() -> Iterator[_Place]:
    folder = paths.cache_dir() / "native"
    try:
        handle = trusted.open_folder(folder)
    except trusted.UntrustedError as error:
        raise _refused(folder, error) from error
    except OSError as error:
        raise NativeError(f"{folder} cannot be used ({error.strerror}).") from error
    try:
        yield _Place(folder, handle)
    finally:
        os.close(handle)


def _refused(folder: Path, error: trusted.UntrustedError) -> NativeError:
    """Files that others may have written cannot be trusted again by a change of rights: they
    must be removed."""
    if error.place.is_relative_to(folder):
        advice = f"remove the folder (`rm -r {shlex.quote(str(folder))}`)"
    else:
        advice = "set WARPZONE_CACHE to a folder that no other user can change"
    return NativeError(f"{error}, so the code there is not run; {advice}.")


def _verified(place: _Place, library: Path) -> int | None:
    """A descriptor of the library if it is there and its seal is right."""
    try:
        sealed = json.loads(_content(place, library.with_suffix(".json")))["seal"]
        secret = _content(place, place.path / _KEY, secret=True)
        handle = trusted.open_file(place.handle, library)
    except trusted.UntrustedError as error:
        raise _refused(place.path, error) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    right = False
    try:
        seal = _seal(secret, library, trusted.read(handle, _MOST_BYTES))
        right = len(secret) == _KEY_BYTES and hmac.compare_digest(seal, str(sealed).encode())
    except OSError:
        return None
    finally:
        if not right:
            os.close(handle)
    return handle if right else None


def _content(place: _Place, path: Path, *, secret: bool = False) -> bytes:
    handle = trusted.open_file(place.handle, path, secret=secret)
    try:
        return trusted.read(handle, 1 << 16)
    finally:
        os.close(handle)


def _seal(secret: bytes, library: Path, content: bytes) -> bytes:
    """The hash covers the name too, so that the library of one ROM is not taken for that of
    another."""
    text = library.name.encode() + b"\0" + content
    return hmac.digest(secret, text, "sha256").hex().encode()


def _make_key(place: _Place) -> bytes:
    """The key of the seals, created if missing."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(_KEY, flags, 0o600, dir_fd=place.handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        secret = trusted.read(handle, _KEY_BYTES)
        if len(secret) != _KEY_BYTES:
            secret = secrets.token_bytes(_KEY_BYTES)
            os.pwrite(handle, secret, 0)
            os.fsync(handle)
    finally:
        os.close(handle)
    # Checked again: a key that others can read seals nothing.
    return _content(place, place.path / _KEY, secret=True)


#: Descriptors of the libraries in use, by file. The system's loader remembers a library by the name
#: it was opened with, here the number of a descriptor, so that number must stay with that file.
_in_use: dict[tuple[int, int], int] = {}


def _open(place: _Place, library: Path) -> "NativeProgram | None":
    handle = _verified(place, library)
    if handle is None:
        return None
    info = os.fstat(handle)
    kept = _in_use.setdefault((info.st_dev, info.st_ino), handle)
    if kept != handle:
        os.close(handle)
    name = f"/proc/self/fd/{kept}"
    try:
        # Without /proc the library is opened by its path, which no other user can change either.
        return _engine.NativeProgram(name if os.path.exists(name) else str(library))
    except (OSError, RuntimeError, ValueError):
        return None


@contextlib.contextmanager
def _locked(place: _Place, path: Path) -> Iterator[None]:
    """Holds a lock that the system releases when the process dies."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path.name, flags, 0o600, dir_fd=place.handle)
    except OSError as error:
        raise NativeError(f"{path} cannot be written ({error.strerror}).") from error
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        waiting = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    waiting = True
                    _say("another process translates the ROM's program; this one waits for it")
                if time.monotonic() > deadline:
                    raise NativeError(f"another process holds {path} for too long.") from None
                time.sleep(0.05)
            except OSError as error:
                raise NativeError(f"{path} cannot be locked ({error.strerror}).") from error
        yield
    finally:
        os.close(descriptor)


def _say(text: str) -> None:
    """Whoever started this sees nothing else for a while."""
    print(f"warpzone: {text}", file=sys.stderr, flush=True)


def _build(rom: bytes, place: _Place, library: Path) -> None:
    """Translates and compiles in a folder of its own, then publishes library and side-car."""
    started = time.perf_counter()
    try:
        _remove_leftovers(library)
        compiler.find()
        _say(f"translating the ROM's program to native code, {_ONCE}")
        with tempfile.TemporaryDirectory(dir=library.parent, prefix=f".{library.stem}.") as name:
            source, product = Path(name) / "program.c", Path(name) / "program.so"
            with loading("translating"):
                source.write_text(_engine.translate(rom))
                used = compiler.compile_shared(source, product)
            product.chmod(0o600)
            content = product.read_bytes()
            side_car = {
                "sha256": hashlib.sha256(content).hexdigest(),
                "seal": _seal(_make_key(place), library, content).decode(),
                "rom": hashlib.sha256(rom).hexdigest(),
                "compiler": used,
                "seconds": round(time.perf_counter() - started, 1),
            }
            paths.publish(product, library)
        text = json.dumps(side_car, indent=1) + "\n"
        paths.write_atomic(library.with_suffix(".json"), text.encode())
    except compiler.NoCompilerError as error:
        raise _NoCompilerError(str(error)) from error
    except compiler.CompilerError as error:
        raise NativeError(str(error)) from error
    except trusted.UntrustedError as error:
        raise _refused(place.path, error) from error
    except (OSError, subprocess.SubprocessError) as error:
        raise NativeError(f"it could not be stored in {library.parent} ({error}).") from error


def _remove_leftovers(library: Path) -> None:
    """Removes what a killed process left behind; the lock on this library is held, so no process
    uses it."""
    for leftover in library.parent.glob(f".{library.stem}.*"):
        if leftover.is_dir():
            for file in leftover.iterdir():
                file.unlink(missing_ok=True)
            leftover.rmdir()
        else:
            leftover.unlink(missing_ok=True)
