"""Interpreter and translated code, compiled or emitted, against the slow 6502 of the data sheet."""

from __future__ import annotations

import platform
import random
import subprocess
from pathlib import Path

import pytest
from cpu_reference import TABLE, Cpu, length

from warpzone import _engine
from warpzone.rom import compiler

DOTS_PER_FRAME = 262 * 341
DEAD_FRAMES = 2
SAFE_DATA = range(0x0200, 0x0700)  # away from the stack and the pointers
POINTERS = 0x80  # zero page: eight pointers into RAM and ROM


def ines(prg: bytes) -> bytes:
    """An NROM image around a 32 KiB program."""
    return b"NES\x1a\x02\x01\x01\x00" + bytes(8) + prg + bytes(8192)


def address_operand(rng: random.Random, *, writes: bool, indexed: bool) -> int:
    """A RAM (or, for reads, ROM) address that stays there when up to 255 is added."""
    if not writes and rng.random() < 0.4:
        return rng.randrange(0xC000, 0xF000)
    return rng.randrange(0x0200, 0x0600 if indexed else 0x0700)


def random_block(rng: random.Random) -> bytes:
    """A straight line of instructions over every official opcode that does not transfer control."""
    out = bytearray()
    depth = 0
    for _ in range(rng.randrange(60, 120)):
        opcode = rng.choice(sorted(TABLE))
        name, mode, _, _ = TABLE[opcode]
        if name in ("JMP", "JSR", "RTS", "RTI", "BRK", "TXS") or mode == "rel":
            continue
        writes = name[:2] == "ST" or name in ("ASL", "LSR", "ROL", "ROR", "INC", "DEC")
        if name in ("PLA", "PLP"):
            if depth == 0:
                continue
            depth -= 1
        if name in ("PHA", "PHP"):
            depth += 1
        if mode in ("imp", "acc"):
            out += bytes([opcode])
        elif mode == "imm":
            out += bytes([opcode, rng.randrange(256)])
        elif mode in ("zp", "zpx", "zpy"):
            # Writes through an index could hit the pointers: give X or Y a known value first.
            base = rng.randrange(0x00, 0x60)
            if mode == "zpx" and writes:
                out += bytes([0xA2, rng.randrange(0x20)])
            if mode == "zpy" and writes:
                out += bytes([0xA0, rng.randrange(0x20)])
            out += bytes([opcode, base])
        elif mode == "iny":
            pointer = POINTERS + 2 * (rng.randrange(4) if writes else rng.randrange(8))
            out += bytes([opcode, pointer])
        elif mode == "inx":
            pointer = 2 * (rng.randrange(4) if writes else rng.randrange(8))
            index = rng.randrange(256)
            out += bytes([0xA2, index, opcode, (POINTERS + pointer - index) & 0xFF])
        else:
            at = address_operand(rng, writes=writes, indexed=mode != "abs")
            out += bytes([opcode, at & 0xFF, at >> 8])
        if rng.random() < 0.15:  # a branch over one instruction, both ways
            out += bytes([rng.choice([0x10, 0x30, 0x50, 0x70, 0x90, 0xB0, 0xD0, 0xF0]), 2, 0xA9])
            out += bytes([rng.randrange(256)])
    return bytes(out + b"\x68" * depth)


def random_program(seed: int) -> bytes:
    """32 KiB: set-up, blocks called as routines and through an indirect jump, for ever."""
    rng = random.Random(seed)
    prg = bytearray(rng.randbytes(0x8000))
    code = bytearray(b"\x78\xd8\xa2\xff\x9a")  # SEI, CLD, LDX #$FF, TXS
    for i in range(8):
        target = rng.randrange(0x0200, 0x0600) if i < 4 else rng.randrange(0xC000, 0xF000)
        for k, byte in enumerate((target & 0xFF, target >> 8)):
            code += bytes([0xA9, byte, 0x85, POINTERS + 2 * i + k])
    loop = 0x8000 + len(code)
    routines = []
    at = 0x9000
    for i in range(6):
        at += rng.randrange(0, 64)
        block = random_block(rng) + b"\x60"
        prg[at - 0x8000 : at - 0x8000 + len(block)] = block
        routines.append(at)
        at += len(block)
        if i % 2:  # leave some close to a page end so that branches cross it
            at = (at & 0xFF00) + 0x100 - 20
    for routine in routines:
        code += bytes([0x20, routine & 0xFF, routine >> 8])
    # A counted loop backwards, BRK and RTI, and JMP ($xxFF) with its famous wrap.
    code += b"\xa0\x05\x88\xd0\xfd"
    code += b"\x00\xea"
    resume = 0x8000 + len(code) + 3 + 10
    code += bytes([0xA9, resume & 0xFF, 0x8D, 0xFF, 0x07, 0xA9, resume >> 8, 0x8D, 0x00, 0x07])
    code += b"\x6c\xff\x07"
    code += bytes([0x4C, loop & 0xFF, loop >> 8])
    prg[: len(code)] = code
    prg[0x7F00] = 0x40  # RTI
    prg[0x7FFA:] = bytes([0x00, 0xFF, 0x00, 0x80, 0x00, 0xFF])
    return bytes(prg)


def load_native(rom: bytes, folder: Path) -> _engine.NativeProgram:
    """Translated code of a test program, compiled without optimisation to be quick."""
    source, library = folder / "program.c", folder / "program.so"
    source.write_text(_engine.translate(rom))
    command = [*compiler.find(), "-O1", "-w", "-fPIC", "-shared", "-o", str(library), str(source)]
    subprocess.run(command, check=True)
    return _engine.NativeProgram(str(library))


def reference(prg: bytes, ram: bytes) -> Cpu:
    return Cpu(rom=prg, ram=bytearray(ram), pc=prg[0x7FFC] | prg[0x7FFD] << 8)


def assert_same(console: _engine.Console, cpu: Cpu, dots: int, where: str) -> None:
    registers = console.registers()
    expected = {"pc": cpu.pc, "a": cpu.a, "x": cpu.x, "y": cpu.y, "s": cpu.s, "p": cpu.p}
    assert {name: registers[name] for name in expected} == expected, where
    assert registers["now"] == cpu.cycles * 3 - dots, where
    assert console.ram().tobytes() == bytes(cpu.ram), where


def test_random_programs_match_the_data_sheet(tmp_path: Path) -> None:
    executed: dict[int, int] = {}
    crossed: dict[int, int] = {}
    for seed in range(8):
        prg = random_program(seed)
        rom = ines(prg)
        folder = tmp_path / str(seed)
        folder.mkdir()
        interpreted = _engine.Console(rom)
        translated = _engine.Console(rom, native=load_native(rom, folder))
        program = _engine.emit(rom) if platform.machine() == "x86_64" else None
        emitted = _engine.Console(rom, native=program)
        cpu = reference(prg, interpreted.ram().tobytes())
        dots = 0
        for frame in range(6):
            interpreted.frame(0)
            translated.frame(0)
            emitted.frame(0)
            short = 1 if frame >= DEAD_FRAMES and (frame - DEAD_FRAMES) % 2 else 0
            dots += DOTS_PER_FRAME - short
            while cpu.cycles * 3 < dots:
                cpu.step()
            assert_same(interpreted, cpu, dots, f"interpreter, program {seed}, frame {frame}")
            assert_same(translated, cpu, dots, f"translated, program {seed}, frame {frame}")
            assert_same(emitted, cpu, dots, f"emitted, program {seed}, frame {frame}")
        for opcode, count in cpu.executed.items():
            executed[opcode] = executed.get(opcode, 0) + count
        for opcode, count in cpu.crossed.items():
            crossed[opcode] = crossed.get(opcode, 0) + count
    assert set(executed) == set(TABLE), "every official opcode must have run"
    indexed = {op for op, (_, mode, _, _) in TABLE.items() if mode in ("abx", "aby", "iny")}
    assert indexed <= set(crossed), "every indexed opcode must have crossed a page"


def test_translated_code_of_another_program_is_refused(tmp_path: Path) -> None:
    native = load_native(ines(random_program(0)), tmp_path)
    with pytest.raises(ValueError, match="another ROM"):
        _engine.Console(ines(random_program(1)), native=native)


@pytest.mark.parametrize("opcode", sorted(set(range(256)) - set(TABLE)))
def test_an_unofficial_opcode_is_an_error_with_its_address(opcode: int) -> None:
    prg = bytearray(0x8000)
    prg[0:2] = bytes([0xEA, opcode])
    prg[0x7FFC:0x7FFE] = b"\x00\x80"
    console = _engine.Console(ines(bytes(prg)))
    with pytest.raises(RuntimeError, match=rf"illegal opcode \${opcode:02X} at \$8001"):
        console.frame(0)


def test_the_table_is_the_official_instruction_set() -> None:
    assert len(TABLE) == 151
    assert all(length(mode) in (1, 2, 3) for _, mode, _, _ in TABLE.values())
