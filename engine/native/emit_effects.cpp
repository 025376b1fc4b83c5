#include "native/analysis.hpp"
#include "native/emitter.hpp"

namespace wz::native {
namespace {

using namespace x86;
using opcodes::Mode;
using opcodes::Op;

constexpr int kDots = timing::kDotsPerCycle;

/// The flags of the 6502 that the host's own hold right behind an instruction.
FlagSet left_in_host(const Instruction& i) {
  const auto& info = opcodes::kTable[i.opcode];
  if (is_modify(info.op) && info.mode != Mode::kAccumulator && !access(i).in_ram) return 0;
  switch (info.op) {
    case Op::kAdc:
    case Op::kSbc:
    case Op::kCmp:
    case Op::kCpx:
    case Op::kCpy:
    case Op::kAsl:
    case Op::kLsr:
    case Op::kRol:
      return kFlagNz | kFlagC;
    case Op::kRor:
      return kFlagC;
    case Op::kLda:
    case Op::kLdx:
    case Op::kLdy:
    case Op::kOra:
    case Op::kAnd:
    case Op::kEor:
    case Op::kInc:
    case Op::kDec:
    case Op::kTax:
    case Op::kTay:
    case Op::kTxa:
    case Op::kTya:
    case Op::kTsx:
    case Op::kInx:
    case Op::kIny:
    case Op::kDex:
    case Op::kDey:
    case Op::kPla:
      return kFlagNz;
    default:
      return 0;
  }
}

}  // namespace

/// Branches that follow at once ask the host's flags. The flags that they alone ask for need not be
/// kept anywhere else.
void Emitter::plan_flags(const Instruction& i) {
  needed_ = flags_.after(i);
  wanted_ = 0;
  const FlagSet left = left_in_host(i);
  FlagSet needed = 0;
  uint16_t pc = i.next;
  while (known(pc) && !flags_.joins(pc)) {
    const Instruction next = decode(cart_, pc);
    const FlagSet flag = asked(opcodes::kTable[next.opcode].op);
    if (!(flag & left)) break;
    wanted_ |= flag;
    needed |= flags_.taken(next);
    pc = next.next;
  }
  if (wanted_) needed_ = needed | flags_.before(pc);
}

void Emitter::set_nz(Reg reg, bool in_host) {
  if (needed_ & kFlagNz) as_.mov(kNz, reg);
  if ((wanted_ & kFlagNz) && !in_host) as_.test8(reg, reg);
}

/// From the host's carry flag, which is a borrow after a subtraction.
void Emitter::set_carry(bool borrow) {
  if (needed_ & kFlagC) as_.set8(borrow ? kAboveEqual : kBelow, kC);
  borrow_ = borrow;
}

void Emitter::effect(const Instruction& i, Op op, Mode mode) {
  const auto load_nz = [&](Reg reg) {
    load(reg, operand(i, mode));
    set_nz(reg, false);
  };
  const auto combine = [&](Alu alu) {
    alu8(alu, kA, operand(i, mode));
    set_nz(kA, true);
  };
  const auto copy = [&](Reg to, Reg from) {
    as_.mov(to, from);
    set_nz(to, false);
  };
  const auto count = [&](Reg reg, bool up) {
    up ? as_.inc8(reg) : as_.dec8(reg);
    set_nz(reg, true);
  };
  // clang-format off
  switch (op) {
    case Op::kLda: load_nz(kA); break;
    case Op::kLdx: load_nz(kX); break;
    case Op::kLdy: load_nz(kY); break;
    case Op::kOra: combine(Alu::kOr); break;
    case Op::kAnd: combine(Alu::kAnd); break;
    case Op::kEor: combine(Alu::kXor); break;
    case Op::kAdc: add(operand(i, mode), flags_.carry(i.pc)); break;
    case Op::kSbc: subtract(operand(i, mode), flags_.carry(i.pc)); break;
    case Op::kCmp: compare(kA, operand(i, mode)); break;
    case Op::kCpx: compare(kX, operand(i, mode)); break;
    case Op::kCpy: compare(kY, operand(i, mode)); break;
    case Op::kBit: bit(operand(i, mode)); break;
    case Op::kSta: store(i, mode, kA); break;
    case Op::kStx: store(i, mode, kX); break;
    case Op::kSty: store(i, mode, kY); break;
    case Op::kAsl: case Op::kLsr: case Op::kRol: case Op::kRor: case Op::kInc: case Op::kDec:
      if (mode == Mode::kAccumulator) change(op, kA); else modify(i, op, mode);
      break;
    case Op::kTax: copy(kX, kA); break;
    case Op::kTay: copy(kY, kA); break;
    case Op::kTxa: copy(kA, kX); break;
    case Op::kTya: copy(kA, kY); break;
    case Op::kTsx: copy(kX, kS); break;
    case Op::kTxs: as_.mov(kS, kX); break;
    case Op::kInx: count(kX, true); break;
    case Op::kIny: count(kY, true); break;
    case Op::kDex: count(kX, false); break;
    case Op::kDey: count(kY, false); break;
    case Op::kClc: if (needed_ & kFlagC) as_.alu(Alu::kXor, kC, kC); break;
    case Op::kSec: if (needed_ & kFlagC) as_.mov(kC, 1u); break;
    case Op::kClv: if (needed_ & kFlagV) as_.alu(Alu::kXor, kV, kV); break;
    case Op::kCli: as_.alu(Alu::kAnd, slot(kRestSlot), ~4); break;
    case Op::kSei: as_.alu(Alu::kOr, slot(kRestSlot), 4); break;
    case Op::kCld: as_.alu(Alu::kAnd, slot(kRestSlot), ~8); break;
    case Op::kSed: as_.alu(Alu::kOr, slot(kRestSlot), 8); break;
    case Op::kPha: push(kA); break;
    case Op::kPla: pull(kA); set_nz(kA, false); break;
    case Op::kPhp: as_.call(to_.pack); as_.alu(Alu::kOr, rax, 0x10); push(rax); break;
    case Op::kPlp: pull(rax); as_.call(to_.unpack); break;
    default: break;  // NOP
  }
  // clang-format on
}

void Emitter::add(const Operand& value, Carry carry) {
  if (carry == Carry::kSet) as_.stc();
  if (carry == Carry::kUnknown) as_.carry_from(kC);
  alu8(carry == Carry::kClear ? Alu::kAdd : Alu::kAdc, kA, value);
  set_carry(false);
  if (needed_ & kFlagV) as_.set8(kOverflow, kV);
  set_nz(kA, true);
}

void Emitter::subtract(const Operand& value, Carry carry) {
  if (carry == Carry::kClear) as_.stc();
  if (carry == Carry::kUnknown) as_.alu8(Alu::kCmp, kC, uint8_t{1});
  alu8(carry == Carry::kSet ? Alu::kSub : Alu::kSbb, kA, value);
  set_carry(true);
  if (needed_ & kFlagV) as_.set8(kOverflow, kV);
  set_nz(kA, true);
}

void Emitter::compare(Reg reg, const Operand& value) {
  if (needed_ & kFlagNz) {
    as_.mov(rcx, reg);
    alu8(Alu::kSub, rcx, value);
    set_carry(true);
    set_nz(rcx, true);
  } else if (needed_ || wanted_) {
    alu8(Alu::kCmp, reg, value);
    set_carry(true);
  }
}

void Emitter::bit(const Operand& value) {
  load(rax, value);
  if (needed_ & kFlagV) {
    as_.mov(kV, rax);
    as_.alu(Alu::kAnd, kV, 0x40);
  }
  if (needed_ & kFlagNz) {
    as_.mov(kNz, rax);
    as_.alu(Alu::kAnd, kNz, 0x80);
    as_.shift(Shift::kShl, kNz, 1);
    as_.alu(Alu::kXor, rcx, rcx);
    as_.test8(rax, kA);
    as_.set8(kNotEqual, rcx);
    as_.alu(Alu::kOr, kNz, rcx);
  }
}

void Emitter::store(const Instruction& i, Mode mode, Reg reg) {
  const Access where = access(i);
  const int dots = opcodes::kTable[i.opcode].cycles * kDots;
  if (where.in_rom) return;
  if (where.in_ram) {
    as_.mov8(in_ram(i, mode), reg);
    return;
  }
  spend();
  address(i, mode, false);
  as_.mov(rdx, reg);
  if (mode != Mode::kAbsolute) {
    write_anywhere(i, dots);
    return;
  }
  as_.lea(rcx, Mem{kNow, -dots});
  as_.call(to_.write);
  if (where.leaves) leave_if_due(i.next);
}

void Emitter::modify(const Instruction& i, Op op, Mode mode) {
  const Access where = access(i);
  const int dots = opcodes::kTable[i.opcode].cycles * kDots;
  if (where.in_ram) {
    const Mem at = in_ram(i, mode);
    const bool rotates = op == Op::kRol || op == Op::kRor;
    if (needed_ & kFlagNz || rotates) {
      as_.movzx8(rcx, at);
      change(op, rcx);
      as_.mov8(at, rcx);
    } else {
      change(op, at);
    }
    return;
  }
  spend();
  address(i, mode, false);
  as_.mov(slot(kAddressSlot), rax);
  read_anywhere(dots, false);
  as_.mov(rcx, rax);
  change(op, rcx);
  if (where.in_rom) return;
  as_.mov(rdx, rcx);
  as_.mov(rax, slot(kAddressSlot));
  write_anywhere(i, dots);
}

void Emitter::change(Op op, Reg reg) {
  switch (op) {
    case Op::kAsl:
      as_.shift8(Shift::kShl, reg);
      break;
    case Op::kLsr:
      as_.shift8(Shift::kShr, reg);
      break;
    case Op::kRol:
      as_.carry_from(kC);
      as_.alu8(Alu::kAdc, reg, reg);
      break;
    case Op::kRor:
      as_.carry_from(kC);
      as_.shift8(Shift::kRcr, reg);
      break;
    case Op::kInc:
      as_.inc8(reg);
      break;
    default:
      as_.dec8(reg);
  }
  if (op != Op::kInc && op != Op::kDec) set_carry(false);
  // A rotation to the right leaves N and Z alone, but then no branch asks the host for them.
  set_nz(reg, true);
}

/// The same in memory, where N and Z are asked for by branches alone.
void Emitter::change(Op op, const Mem& at) {
  if (op == Op::kInc) {
    as_.inc8(at);
  } else if (op == Op::kDec) {
    as_.dec8(at);
  } else {
    as_.shift8(op == Op::kAsl ? Shift::kShl : Shift::kShr, at);
    set_carry(false);
  }
}

}  // namespace wz::native
