"""The cache of translated code: built once, private, verified, never half-written.

The engine is replaced by a small stand-in, so that a build takes milliseconds; translated ROMs are
tested where they are played.
"""

import ctypes
import errno
import fcntl
import json
import os
import stat
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest

from warpzone import _engine
from warpzone.rom import native, paths

OUT = pytest.CaptureFixture[str]
SOURCE = "int wz_answer(void) { return 42; }\n"
#: Builds with the same stand-in, in a process of its own.
PROCESS = f"""
import ctypes
from types import SimpleNamespace
from warpzone.rom import native
native._engine = SimpleNamespace(
    translate=lambda rom: {SOURCE!r}, native_abi=lambda: "1", NativeProgram=ctypes.CDLL
)
program = native.load(b"rom")
print(program.wz_answer())
"""


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    def emit(rom: bytes) -> None:
        raise RuntimeError("the stand-in emits nothing")

    engine = SimpleNamespace(
        translate=lambda rom: SOURCE, native_abi=lambda: "1", NativeProgram=ctypes.CDLL, emit=emit
    )
    monkeypatch.setattr(native, "_engine", engine)
    return engine


@pytest.fixture
def compiler(folders: Path, engine: object, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that writes one line to a log for each library it makes."""
    log = folders / "compiled"
    log.touch()
    script = folders / "logging-cc"
    script.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) echo >> {log};; esac\nexec cc "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return log


def builds(log: Path) -> int:
    return len(log.read_text().splitlines())


def visible(folders: Path) -> set[str]:
    return {path.suffix for path in (folders / "cache" / "native").iterdir()}


def test_builds_once_and_is_private(folders: Path, compiler: Path) -> None:
    for _ in range(2):
        program = native.load(b"rom")
        assert program.wz_answer() == 42  # type: ignore[union-attr]
    assert builds(compiler) == 1
    assert visible(folders) == {".so", ".json", ".lock", ".key"}
    library = native.cached(b"rom")
    assert library is not None
    assert stat.S_IMODE(library.parent.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) & 0o077 == 0 for file in library.parent.iterdir())


def test_translating_is_announced_before_it_begins(
    compiler: Path, engine: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []

    def translate(rom: bytes) -> str:
        heard.append(capsys.readouterr().err)
        return SOURCE

    engine.translate = translate
    native.load(b"rom")
    assert len(heard) == 1
    assert heard[0].startswith("warpzone: translating the ROM's program to native code, once on")
    assert "about 10 seconds" in heard[0]
    assert heard[0].count("\n") == 1
    # What is translated already is loaded without a word.
    native.load(b"rom")
    assert capsys.readouterr().err == ""
    assert len(heard) == 1


def test_on_a_terminal_translating_shows_how_long_it_takes(
    compiler: Path,
    engine: object,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    native.load(b"rom")
    announced, _, shown = capsys.readouterr().err.partition("\n")
    assert announced.startswith("warpzone: translating the ROM's program")
    assert shown.startswith("\r\x1b[Ktranslating · 0 s")
    assert shown.endswith("\r\x1b[K")


def test_nothing_is_announced_without_a_compiler(
    folders: Path,
    engine: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(RuntimeWarning, match="no-such-compiler"):
        native.load(b"rom")
    assert "translating" not in capsys.readouterr().err


def test_waiting_for_another_process_is_announced(
    folders: Path, compiler: Path, monkeypatch: pytest.MonkeyPatch, capsys: OUT
) -> None:
    native.load(b"another rom")
    lock = folders / "cache" / "native" / f"{native.key(b'rom')}.lock"
    heard: list[str] = []
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        capsys.readouterr()

        def give_up(seconds: float) -> None:
            heard.append(capsys.readouterr().err)
            fcntl.flock(held, fcntl.LOCK_UN)

        # Not the module's own sleep, which waiting for the compiler calls as well.
        clock = SimpleNamespace(**{**vars(time), "sleep": give_up})
        monkeypatch.setattr(native, "time", clock)
        assert native.load(b"rom") is not None
    assert heard == [
        "warpzone: another process translates the ROM's program; this one waits for it\n"
    ]


def test_key_follows_rom_engine_and_cpu(
    engine: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [native.key(b"rom"), native.key(b"another rom")]
    engine.native_abi = lambda: "2"
    keys.append(native.key(b"rom"))
    monkeypatch.setattr(native, "version", lambda name: "99")
    keys.append(native.key(b"rom"))
    monkeypatch.setattr(native, "cpu_identity", lambda: ["another cpu"])
    keys.append(native.key(b"rom"))
    assert len(set(keys)) == 5
    assert native.key(b"rom") == keys[-1]


def test_cpu_identity_names_the_instruction_sets() -> None:
    identity = native.cpu_identity()
    assert identity == native.cpu_identity()
    if Path("/proc/cpuinfo").exists():
        assert any(line.startswith(("flags", "Features")) for line in identity)


@pytest.mark.parametrize("part", [".so", ".json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "empty", "delete"])
def test_damage_is_noticed_and_repaired(
    folders: Path, compiler: Path, part: str, damage: str
) -> None:
    native.load(b"rom")
    library = native.cached(b"rom")
    assert library is not None
    file = library.with_suffix(part)
    content = file.read_bytes()
    spoiled = {
        "flip": content[:20] + bytes([content[20] ^ 0xFF]) + content[21:],
        "truncate": content[: len(content) // 2],
        "empty": b"",
    }
    # A new file, because the test still has the old one mapped.
    file.unlink()
    if damage != "delete":
        file.write_bytes(spoiled[damage])
    assert native.cached(b"rom") is None
    assert native.load(b"rom").wz_answer() == 42  # type: ignore[union-attr]
    assert builds(compiler) == 2


def test_verified_library_that_does_not_load_is_rebuilt_once(
    folders: Path, compiler: Path, engine: SimpleNamespace
) -> None:
    def refuse(path: str) -> None:
        raise ValueError("built for another engine")

    engine.NativeProgram = refuse
    with pytest.warns(RuntimeWarning, match="cannot be loaded"):
        assert native.load(b"rom") is None
    assert builds(compiler) == 1


def test_library_of_another_engine_is_not_used(
    folders: Path, compiler: Path, engine: SimpleNamespace
) -> None:
    engine.translate = lambda rom: 'const char wz_abi[] = "of an older engine";\n'
    engine.NativeProgram = _engine.NativeProgram
    with pytest.warns(RuntimeWarning, match="cannot be loaded"):
        assert native.load(b"rom") is None


def test_processes_that_start_together_build_once(folders: Path, compiler: Path) -> None:
    command = [sys.executable, "-c", PROCESS]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    answers = [process.communicate(timeout=120)[0].strip() for process in running]
    assert answers == [b"42"] * 3
    assert builds(compiler) == 1


def test_killed_build_leaves_nothing_behind(folders: Path, engine: object) -> None:
    """A process killed in the compiler: the lock is free again, its leftovers go with the next."""
    hanging = folders / "hanging-cc"
    hanging.write_text(f"#!/bin/sh\necho $$ > {folders / 'pid'}\nexec sleep 600\n")
    hanging.chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS], env={**os.environ, "CC": str(hanging)}
    )
    try:
        while not (folders / "pid").exists() or not (folders / "pid").read_text():
            assert process.poll() is None, "the build ended early"
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    os.kill(int((folders / "pid").read_text()), 9)
    assert native.cached(b"rom") is None
    assert native.load(b"rom").wz_answer() == 42  # type: ignore[union-attr]
    assert visible(folders) == {".so", ".json", ".lock", ".key"}


def test_interrupted_publication_is_repaired(
    folders: Path, compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(path: Path, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(paths, "write_atomic", interrupt)
        with pytest.raises(KeyboardInterrupt):
            native.load(b"rom")
    assert native.cached(b"rom") is None
    assert native.load(b"rom") is not None
    assert visible(folders) == {".so", ".json", ".lock", ".key"}


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
def test_folder_others_can_write_to_is_refused(folders: Path, compiler: Path, mode: int) -> None:
    native.load(b"rom")
    folder = folders / "cache" / "native"
    folder.chmod(mode)
    with pytest.warns(RuntimeWarning, match="others can write to .*`rm -r "):
        assert native.load(b"rom") is None
    assert native.cached(b"rom") is None


def test_folder_of_another_user_is_refused(
    folders: Path, compiler: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    native.load(b"rom")
    owner = os.geteuid()
    monkeypatch.setattr("warpzone.rom.native.os.geteuid", lambda: owner + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert native.load(b"rom") is None


def test_link_in_place_of_the_folder_is_refused(folders: Path, compiler: Path) -> None:
    (folders / "elsewhere").mkdir(mode=0o700)
    (folders / "cache").mkdir()
    (folders / "cache" / "native").symlink_to(folders / "elsewhere")
    with pytest.warns(RuntimeWarning, match="not a folder of its own"):
        assert native.load(b"rom") is None


def test_no_compiler(folders: Path, engine: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folders))
    with pytest.warns(RuntimeWarning, match=r"no C compiler; install gcc.*5 times slower"):
        assert native.load(b"rom") is None
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(RuntimeWarning, match=r"CC \(no-such-compiler\) is not there"):
        assert native.load(b"rom") is None


def test_what_was_built_outlives_the_compiler(
    folders: Path, engine: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    native.load(b"rom")
    monkeypatch.setenv("PATH", str(folders))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native.load(b"rom") is not None


def test_failing_compiler(folders: Path, compiler: Path, engine: SimpleNamespace) -> None:
    engine.translate = lambda rom: "this is not C;\n"
    with pytest.warns(RuntimeWarning, match="failed .*error.*") as caught:
        assert native.load(b"rom") is None
    assert len(caught) == 1
    assert visible(folders) == {".lock"}


@pytest.mark.parametrize("call", ["os.open", "fcntl.flock"])
def test_cache_that_takes_no_lock(
    folders: Path, compiler: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A full or read-only disk, or one that knows no locks: the interpreter does the work."""

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(f"warpzone.rom.native.{call}", fail)
    with pytest.warns(RuntimeWarning, match=r"cannot be .* \(No space left"):
        assert native.load(b"rom") is None


def test_leftovers_that_cannot_go(folders: Path, compiler: Path) -> None:
    native.load(b"rom")
    library = native.cached(b"rom")
    assert library is not None
    library.unlink()
    (library.parent / f".{library.stem}.x" / "folder").mkdir(parents=True)
    with pytest.warns(RuntimeWarning, match="could not be stored"):
        assert native.load(b"rom") is None


def test_switched_off(folders: Path, compiler: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPZONE_NATIVE", "0")
    with pytest.warns(RuntimeWarning, match="WARPZONE_NATIVE=0"):
        assert native.load(b"rom") is None
    assert not (folders / "cache").exists()


def test_side_car_says_where_it_came_from(folders: Path, compiler: Path) -> None:
    native.load(b"rom")
    library = native.cached(b"rom")
    assert library is not None
    side_car = json.loads(library.with_suffix(".json").read_text())
    assert set(side_car) == {"sha256", "seal", "rom", "compiler", "seconds"}
    assert side_car["compiler"]
