"""Translated code without a compiler: when it is emitted, what is said, and where it is refused."""

import platform
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpzone import _engine
from warpzone.cli.main import main
from warpzone.env.vector import MarioVectorEnv
from warpzone.rom import native

OUT = pytest.CaptureFixture[str]
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="machine code is emitted for x86-64 CPUs only"
)


UNKNOWN = 77
#: Gives up the right to make memory executable, then loads a program and plays.
REFUSED = f"""
import ctypes, sys
from pathlib import Path
from warpzone import _engine
from warpzone.rom import native
if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0) != 0:
    sys.exit({UNKNOWN})
rom = Path(sys.argv[1]).read_bytes()
program = native.load(rom)
print(program)
console = _engine.Console(rom, native=program)
console.frames(bytes(30))
print("played")
"""


@pytest.fixture
def no_compiler(folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(folders))
    return folders


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def emit(rom: bytes) -> None:
        raise RuntimeError("this system refuses memory for code (Permission denied)")

    engine = SimpleNamespace(translate=_engine.translate, native_abi=_engine.native_abi, emit=emit)
    monkeypatch.setattr(native, "_engine", engine)


def test_without_a_compiler_code_is_emitted_in_silence(rom: bytes, no_compiler: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program = native.load(rom)
        assert program is not None
        assert program.how == "emitted"
        assert native.prepare(rom).how == "emitted"
    assert native.cached(rom) is None
    assert not list(no_compiler.rglob("*.so"))


def test_emitted_code_can_be_asked_for(
    rom: bytes, native: _engine.NativeProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    from warpzone.rom import native as translator

    assert native.how == "compiled"
    assert translator.emit(rom).how == "emitted"
    monkeypatch.setenv("WARPZONE_NATIVE", "emitted")
    assert translator.prepare(rom).how == "emitted"


def test_emitting_leaves_nothing_on_the_disk(
    rom: bytes, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPZONE_NATIVE", "emitted")
    assert native.prepare(rom).how == "emitted"
    assert list(folders.iterdir()) == []


def test_what_can_be_had_at_once(
    rom: bytes, folders: Path, monkeypatch: pytest.MonkeyPatch, refused: None
) -> None:
    assert native.ready(rom) is None
    monkeypatch.setattr(native, "_engine", _engine)
    program = native.ready(rom)
    assert program is not None
    assert program.how == "emitted"
    assert native.cached(rom) is None, "nothing was compiled"
    monkeypatch.setenv("WARPZONE_NATIVE", "0")
    assert native.ready(rom) is None


def test_a_compiler_that_is_wrong_is_named(
    rom: bytes, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(
        RuntimeWarning, match=r"CC \(no-such-compiler\) .* Emitted code is used"
    ) as w:
        program = native.load(rom)
    assert len(w) == 1
    assert program is not None
    assert program.how == "emitted"


def test_a_cache_that_is_refused_does_not_slow_the_game(rom: bytes, no_compiler: Path) -> None:
    (no_compiler / "cache" / "native").mkdir(parents=True, mode=0o777)
    (no_compiler / "cache" / "native").chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"others can write to .* Emitted code is used"):
        program = native.load(rom)
    assert program is not None
    assert program.how == "emitted"


def test_refused_memory_is_one_sentence(rom: bytes, no_compiler: Path, refused: None) -> None:
    expected = r"no C compiler; .*Nor can it be emitted: this system refuses .*5 times slower"
    with pytest.warns(RuntimeWarning, match=expected) as caught:
        assert native.load(rom) is None
    assert len(caught) == 1
    assert native.emitter_refusal() == "this system refuses memory for code (Permission denied)"


def test_a_system_that_refuses_plays_in_the_interpreter(rom: bytes, no_compiler: Path) -> None:
    """Really refused, by the kernel, for a process of its own."""
    (no_compiler / "game.nes").write_bytes(rom)
    command = [sys.executable, "-c", REFUSED, str(no_compiler / "game.nes")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode == UNKNOWN:
        pytest.skip("this kernel knows no PR_SET_MDWE")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None", "played"]
    assert "Nor can it be emitted: this system refuses memory for code (" in done.stderr
    assert "the interpreter is used" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_emitter_works_here() -> None:
    assert native.emitter_refusal() is None


@pytest.mark.parametrize("choice", ["1", "emitted"])
def test_install_says_it_in_one_line(
    rom: bytes,
    variant: str,
    no_compiler: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: OUT,
    choice: str,
) -> None:
    monkeypatch.setenv("WARPZONE_NATIVE", choice)
    source = no_compiler / "game.nes"
    source.write_bytes(rom)
    assert main(["rom", "install", "--from", str(source)]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith(f"{variant}: translated without a compiler, by the emitter")
    assert shown.err == ""


def test_environments_take_it(rom: bytes) -> None:
    env = MarioVectorEnv(1, rom=rom, native="emitted")
    assert env.native
    env.close()
    with pytest.raises(ValueError, match="native='emitted' cannot be had with timing='nes-py'"):
        MarioVectorEnv(1, rom=rom, native="emitted", timing="nes-py")
    wrong: Any = "fast"
    with pytest.raises(ValueError, match="native must be True, False, 'auto' or 'emitted'"):
        MarioVectorEnv(1, rom=rom, native=wrong)


def test_code_is_never_writable_and_executable(rom: bytes) -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("this system does not tell")

    def executable() -> set[str]:
        lines = Path("/proc/self/maps").read_text().splitlines()
        return {line for line in lines if "x" in line.split()[1]}

    before = executable()
    program = native.emit(rom)
    added = executable() - before
    assert len(added) == 1
    fields = added.pop().split()
    assert fields[1] == "r-xp"
    assert len(fields) == 5, "no file is behind it"
    del program
    assert executable() == before


def test_a_program_that_is_played_is_not_freed(rom: bytes) -> None:
    console = _engine.Console(rom, native=_engine.emit(rom))
    expected = _engine.Console(rom)
    for mask in bytes([8]) * 60:
        console.frame(mask)
        expected.frame(mask)
    assert console.save() == expected.save()


def test_emitted_code_of_another_program_is_refused(rom: bytes) -> None:
    other = bytearray(rom)
    other[16 + 0x4000] ^= 0xFF
    with pytest.raises(ValueError, match="another ROM"):
        _engine.Console(bytes(other), native=_engine.emit(rom))


def test_a_choice_that_is_none_is_refused(rom: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPZONE_NATIVE", "fast")
    with pytest.raises(ValueError, match="WARPZONE_NATIVE is 0, 1 or emitted, not 'fast'"):
        native.load(rom)
    monkeypatch.setenv("WARPZONE_NATIVE", "")
    assert native.enabled()
    assert not native.emits()


def test_info_says_what_will_run(
    rom: bytes, no_compiler: Path, monkeypatch: pytest.MonkeyPatch, capsys: OUT
) -> None:
    (no_compiler / "game.nes").write_bytes(rom)
    monkeypatch.setenv("WARPZONE_ROM", str(no_compiler / "game.nes"))
    assert main(["rom", "info"]) == 0
    line = "translated emitted in memory when it is loaded, because there is no compiler"
    assert line in capsys.readouterr().out
    monkeypatch.setenv("WARPZONE_NATIVE", "0")
    assert main(["rom", "info"]) == 0
    assert "translated no: switched off by WARPZONE_NATIVE=0" in capsys.readouterr().out
