"""A 6502 as the data sheet describes it: one opcode table, no cleverness, no shared code."""

from __future__ import annotations

from dataclasses import dataclass, field

# The flags in 6502 order; the interrupt flag is IRQ because a lone I reads like a one.
N, V, U, B, D, IRQ, Z, C = 0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01

# Columns of the data sheet: mnemonic, then addressing mode -> (opcode, cycles). A "+" after the
# cycles means one more when indexing crosses a page.
_SHEET = """
ADC imm:69:2 zp:65:3 zpx:75:4 abs:6D:4 abx:7D:4+ aby:79:4+ inx:61:6 iny:71:5+
AND imm:29:2 zp:25:3 zpx:35:4 abs:2D:4 abx:3D:4+ aby:39:4+ inx:21:6 iny:31:5+
ASL acc:0A:2 zp:06:5 zpx:16:6 abs:0E:6 abx:1E:7
BCC rel:90:2
BCS rel:B0:2
BEQ rel:F0:2
BIT zp:24:3 abs:2C:4
BMI rel:30:2
BNE rel:D0:2
BPL rel:10:2
BRK imp:00:7
BVC rel:50:2
BVS rel:70:2
CLC imp:18:2
CLD imp:D8:2
CLI imp:58:2
CLV imp:B8:2
CMP imm:C9:2 zp:C5:3 zpx:D5:4 abs:CD:4 abx:DD:4+ aby:D9:4+ inx:C1:6 iny:D1:5+
CPX imm:E0:2 zp:E4:3 abs:EC:4
CPY imm:C0:2 zp:C4:3 abs:CC:4
DEC zp:C6:5 zpx:D6:6 abs:CE:6 abx:DE:7
DEX imp:CA:2
DEY imp:88:2
EOR imm:49:2 zp:45:3 zpx:55:4 abs:4D:4 abx:5D:4+ aby:59:4+ inx:41:6 iny:51:5+
INC zp:E6:5 zpx:F6:6 abs:EE:6 abx:FE:7
INX imp:E8:2
INY imp:C8:2
JMP abs:4C:3 ind:6C:5
JSR abs:20:6
LDA imm:A9:2 zp:A5:3 zpx:B5:4 abs:AD:4 abx:BD:4+ aby:B9:4+ inx:A1:6 iny:B1:5+
LDX imm:A2:2 zp:A6:3 zpy:B6:4 abs:AE:4 aby:BE:4+
LDY imm:A0:2 zp:A4:3 zpx:B4:4 abs:AC:4 abx:BC:4+
LSR acc:4A:2 zp:46:5 zpx:56:6 abs:4E:6 abx:5E:7
NOP imp:EA:2
ORA imm:09:2 zp:05:3 zpx:15:4 abs:0D:4 abx:1D:4+ aby:19:4+ inx:01:6 iny:11:5+
PHA imp:48:3
PHP imp:08:3
PLA imp:68:4
PLP imp:28:4
ROL acc:2A:2 zp:26:5 zpx:36:6 abs:2E:6 abx:3E:7
ROR acc:6A:2 zp:66:5 zpx:76:6 abs:6E:6 abx:7E:7
RTI imp:40:6
RTS imp:60:6
SBC imm:E9:2 zp:E5:3 zpx:F5:4 abs:ED:4 abx:FD:4+ aby:F9:4+ inx:E1:6 iny:F1:5+
SEC imp:38:2
SED imp:F8:2
SEI imp:78:2
STA zp:85:3 zpx:95:4 abs:8D:4 abx:9D:5 aby:99:5 inx:81:6 iny:91:6
STX zp:86:3 zpy:96:4 abs:8E:4
STY zp:84:3 zpx:94:4 abs:8C:4
TAX imp:AA:2
TAY imp:A8:2
TSX imp:BA:2
TXA imp:8A:2
TXS imp:9A:2
TYA imp:98:2
"""

#: opcode -> (mnemonic, mode, cycles, page penalty)
TABLE: dict[int, tuple[str, str, int, bool]] = {}
for _line in _SHEET.strip().splitlines():
    _name, *_modes = _line.split()
    for _item in _modes:
        _mode, _code, _cycles = _item.split(":")
        TABLE[int(_code, 16)] = (_name, _mode, int(_cycles.rstrip("+")), _cycles.endswith("+"))

LENGTH = {"imp": 1, "acc": 1, "imm": 2, "zp": 2, "zpx": 2, "zpy": 2, "inx": 2, "iny": 2, "rel": 2}


def length(mode: str) -> int:
    """Bytes of an instruction."""
    return LENGTH.get(mode, 3)


@dataclass
class Cpu:
    """Registers, 2 KiB of RAM, a ROM at $8000, and a count of cycles. No I/O, no interrupts."""

    rom: bytes
    ram: bytearray
    pc: int
    a: int = 0
    x: int = 0
    y: int = 0
    s: int = 0xFD
    p: int = U | IRQ
    cycles: int = 0
    executed: dict[int, int] = field(default_factory=dict)
    crossed: dict[int, int] = field(default_factory=dict)

    def read(self, at: int) -> int:
        at &= 0xFFFF
        if at < 0x2000:
            return self.ram[at % 0x800]
        assert at >= 0x8000, f"the test program touched I/O at ${at:04X}"
        return self.rom[at - 0x8000]

    def write(self, at: int, value: int) -> None:
        at &= 0xFFFF
        if at < 0x2000:
            self.ram[at % 0x800] = value & 0xFF
        else:
            assert at >= 0x8000, f"the test program touched I/O at ${at:04X}"

    def word(self, at: int) -> int:
        return self.read(at) | self.read(at + 1) << 8

    def zero_page_word(self, at: int) -> int:
        return self.ram[at & 0xFF] | self.ram[(at + 1) & 0xFF] << 8

    def push(self, value: int) -> None:
        self.ram[0x100 + self.s] = value & 0xFF
        self.s = (self.s - 1) & 0xFF

    def pull(self) -> int:
        self.s = (self.s + 1) & 0xFF
        return self.ram[0x100 + self.s]

    def flag(self, mask: int, on: object) -> None:
        self.p = (self.p | mask) if on else (self.p & ~mask)

    def nz(self, value: int) -> int:
        value &= 0xFF
        self.flag(N, value & 0x80)
        self.flag(Z, value == 0)
        return value

    def effective_address(self, mode: str) -> tuple[int, int]:
        """The operand's address, and the address before indexing was added."""
        at = self.pc + 1
        if mode == "imm":
            return at, at
        if mode == "zp":
            return self.read(at), self.read(at)
        if mode == "zpx":
            return (self.read(at) + self.x) & 0xFF, 0
        if mode == "zpy":
            return (self.read(at) + self.y) & 0xFF, 0
        if mode == "abs":
            return self.word(at), self.word(at)
        if mode == "abx":
            return (self.word(at) + self.x) & 0xFFFF, self.word(at)
        if mode == "aby":
            return (self.word(at) + self.y) & 0xFFFF, self.word(at)
        if mode == "inx":
            pointer = self.zero_page_word(self.read(at) + self.x)
            return pointer, pointer
        assert mode == "iny", mode
        pointer = self.zero_page_word(self.read(at))
        return (pointer + self.y) & 0xFFFF, pointer

    def step(self) -> None:
        """One instruction."""
        opcode = self.read(self.pc)
        name, mode, cycles, penalty = TABLE[opcode]
        self.executed[opcode] = self.executed.get(opcode, 0) + 1
        after = (self.pc + length(mode)) & 0xFFFF
        self.cycles += cycles
        if mode == "rel":
            self.branch(name, after, opcode)
        elif name in ("JMP", "JSR", "RTS", "RTI", "BRK"):
            self.jump(name, mode, after)
        else:
            at = base = 0
            if mode not in ("imp", "acc"):
                at, base = self.effective_address(mode)
            if mode in ("abx", "aby", "iny") and at >> 8 != base >> 8:
                self.crossed[opcode] = self.crossed.get(opcode, 0) + 1
                self.cycles += penalty
            self.pc = after
            self.operate(name, mode, at)

    def branch(self, name: str, after: int, opcode: int) -> None:
        flag = {"BCC": C, "BCS": C, "BEQ": Z, "BNE": Z, "BMI": N, "BPL": N, "BVC": V, "BVS": V}
        wanted = name in ("BCS", "BEQ", "BMI", "BVS")
        offset = self.read(self.pc + 1)
        self.pc = after
        if bool(self.p & flag[name]) == wanted:
            self.pc = (after + (offset ^ 0x80) - 0x80) & 0xFFFF
            self.cycles += 1
            if self.pc >> 8 != after >> 8:
                self.crossed[opcode] = self.crossed.get(opcode, 0) + 1
                self.cycles += 1

    def jump(self, name: str, mode: str, after: int) -> None:
        if name == "JMP" and mode == "abs":
            self.pc = self.word(self.pc + 1)
        elif name == "JMP":
            at = self.word(self.pc + 1)
            # The high byte comes from the same page.
            self.pc = self.read(at) | self.read((at & 0xFF00) | ((at + 1) & 0xFF)) << 8
        elif name == "JSR":
            self.push((after - 1) >> 8)
            self.push(after - 1)
            self.pc = self.word(self.pc + 1)
        elif name == "RTS":
            self.pc = (self.pull() | self.pull() << 8) + 1 & 0xFFFF
        elif name == "RTI":
            self.p = (self.pull() | U) & ~B
            self.pc = self.pull() | self.pull() << 8
        else:
            self.push((self.pc + 2) >> 8)
            self.push(self.pc + 2)
            self.push(self.p | B | U)
            self.p |= IRQ
            self.pc = self.word(0xFFFE)

    def add(self, value: int) -> None:
        total = self.a + value + (self.p & C)
        self.flag(C, total > 0xFF)
        self.flag(V, (self.a ^ total) & (value ^ total) & 0x80)
        self.a = self.nz(total)

    def compare(self, register: int, value: int) -> None:
        self.flag(C, register >= value)
        self.nz(register - value)

    def shift(self, name: str, value: int) -> int:
        carry = self.p & C
        if name == "ASL":
            self.flag(C, value & 0x80)
            return self.nz(value << 1)
        if name == "LSR":
            self.flag(C, value & 1)
            return self.nz(value >> 1)
        if name == "ROL":
            self.flag(C, value & 0x80)
            return self.nz(value << 1 | carry)
        self.flag(C, value & 1)
        return self.nz(value >> 1 | carry << 7)

    def operate(self, name: str, mode: str, at: int) -> None:
        if name in ("LDA", "LDX", "LDY"):
            setattr(self, name[2].lower(), self.nz(self.read(at)))
        elif name in ("STA", "STX", "STY"):
            self.write(at, getattr(self, name[2].lower()))
        elif name == "ADC":
            self.add(self.read(at))
        elif name == "SBC":
            self.add(self.read(at) ^ 0xFF)
        elif name == "AND":
            self.a = self.nz(self.a & self.read(at))
        elif name == "ORA":
            self.a = self.nz(self.a | self.read(at))
        elif name == "EOR":
            self.a = self.nz(self.a ^ self.read(at))
        elif name in ("CMP", "CPX", "CPY"):
            register = {"CMP": self.a, "CPX": self.x, "CPY": self.y}[name]
            self.compare(register, self.read(at))
        elif name == "BIT":
            value = self.read(at)
            self.flag(Z, not self.a & value)
            self.p = (self.p & ~(N | V)) | (value & (N | V))
        elif name in ("ASL", "LSR", "ROL", "ROR"):
            if mode == "acc":
                self.a = self.shift(name, self.a)
            else:
                self.write(at, self.shift(name, self.read(at)))
        elif name in ("INC", "DEC"):
            self.write(at, self.nz(self.read(at) + (1 if name == "INC" else -1)))
        elif name in ("INX", "INY", "DEX", "DEY"):
            counter = name[2].lower()
            change = 1 if name[0] == "I" else -1
            setattr(self, counter, self.nz(getattr(self, counter) + change))
        elif name in ("TAX", "TAY", "TXA", "TYA", "TSX"):
            setattr(self, name[2].lower(), self.nz(getattr(self, name[1].lower())))
        elif name == "TXS":
            self.s = self.x
        elif name == "PHA":
            self.push(self.a)
        elif name == "PLA":
            self.a = self.nz(self.pull())
        elif name == "PHP":
            self.push(self.p | B | U)
        elif name == "PLP":
            self.p = (self.pull() | U) & ~B
        elif name in ("CLC", "CLD", "CLI", "CLV", "SEC", "SED", "SEI"):
            self.flag({"C": C, "D": D, "I": IRQ, "V": V}[name[2]], name[0] == "S")
        else:
            assert name == "NOP", name
