#include "native/analysis.hpp"
#include "native/emitter.hpp"

namespace wz::native {

namespace {

using namespace x86;
using opcodes::Mode;

constexpr int kDots = timing::kDotsPerCycle;

}  // namespace

/// A page that is crossed costs a cycle: the difference is negative then, and its two highest bits
/// are the three dots.
void Emitter::indexed_penalty(unsigned base, Reg index) {
  if (!(base & 0xFF)) return;
  as_.mov(rdx, 0xFF - (base & 0xFF));
  as_.alu(Alu::kSub, rdx, index);
  as_.shift(Shift::kShr, rdx, 30);
  as_.alu(Alu::kAdd, kNow, rdx);
}

/// The operand of an instruction that is surely in RAM. RAX may be part of it.
Mem Emitter::in_ram(const Instruction& i, Mode mode) {
  const unsigned base = i.operand;
  if (mode == Mode::kZeroPage) return ram(base);
  if (mode == Mode::kAbsolute) return ram(base & 0x7FF);
  const Reg index = index_of(mode);
  const Access where = access(i);
  if (where.indexed && where.last < 0x800) return ram(base, index);
  as_.lea(rax, Mem{index, static_cast<int32_t>(base)});
  if (where.zero_page) {
    as_.movzx8(rax, rax);
  } else {
    as_.alu(Alu::kAnd, rax, 0x7FF);
  }
  return ram(0, rax);
}

/// Computes an address that is known at run time only into EAX. With `penalty` the dots of a
/// crossed page are added to the time, and are in EDX.
void Emitter::address(const Instruction& i, Mode mode, bool penalty) {
  const unsigned base = i.operand;
  const Reg index = index_of(mode);
  if (mode == Mode::kAbsolute) {
    as_.mov(rax, base);
    if (penalty) as_.alu(Alu::kXor, rdx, rdx);
    return;
  }
  if (mode == Mode::kAbsoluteX || mode == Mode::kAbsoluteY) {
    if (penalty) {
      as_.alu(Alu::kXor, rdx, rdx);
      indexed_penalty(base, index);
    }
    as_.lea(rax, Mem{index, static_cast<int32_t>(base)});
    as_.movzx16(rax, rax);
    return;
  }
  if (mode == Mode::kIndirectX) {
    as_.lea(rax, Mem{kX, static_cast<int32_t>(base)});
    as_.movzx8(rax, rax);
    as_.lea(rcx, Mem{rax, 1});
    as_.movzx8(rcx, rcx);
    as_.movzx8(rax, ram(0, rax));
    as_.movzx8(rcx, ram(0, rcx));
    as_.shift(Shift::kShl, rcx, 8);
    as_.alu(Alu::kOr, rax, rcx);
    if (penalty) as_.alu(Alu::kXor, rdx, rdx);
    return;
  }
  as_.movzx8(rax, ram(base));
  as_.movzx8(rcx, ram((base + 1) & 0xFF));
  as_.alu(Alu::kAdd, rax, kY);
  if (penalty) {
    as_.mov(rdx, 0xFF);
    as_.alu(Alu::kSub, rdx, rax);
    as_.shift(Shift::kShr, rdx, 30);
    as_.alu(Alu::kAdd, kNow, rdx);
  }
  as_.shift(Shift::kShl, rcx, 8);
  as_.alu(Alu::kAdd, rax, rcx);
  as_.movzx16(rax, rax);
}

/// The byte at EAX, to EAX. `dots`: what the instruction takes, without the penalty in EDX.
void Emitter::read_anywhere(int dots, bool penalty) {
  const Label done = as_.label();
  as_.alu(Alu::kCmp, rax, 0x2000);
  as_.jump(kAboveEqual, aside([this, dots, penalty, done] {
             const Label io = as_.label();
             as_.alu(Alu::kCmp, rax, 0x8000);
             as_.jump(kBelow, io);
             as_.movzx8(rax, prg(0, rax));
             as_.jump(done);
             as_.bind(io);
             as_.lea(rcx, Mem{kNow, -dots});
             if (penalty) as_.alu(Alu::kSub, rcx, rdx);
             as_.call(to_.read);
             as_.jump(done);
           }));
  as_.alu(Alu::kAnd, rax, 0x7FF);
  as_.movzx8(rax, ram(0, rax));
  as_.bind(done);
}

void Emitter::read_constant(unsigned address, int dots) {
  if (address < 0x2000) {
    as_.movzx8(rax, ram(address & 0x7FF));
  } else if (address >= 0x8000) {
    as_.mov(rax, cart_.read(static_cast<uint16_t>(address)));
  } else {
    as_.mov(rax, address);
    as_.lea(rcx, Mem{kNow, -dots});
    as_.call(to_.read);
  }
}

/// The byte in EDX, to the address in EAX.
void Emitter::write_anywhere(const Instruction& i, int dots) {
  const Label done = as_.label();
  as_.alu(Alu::kCmp, rax, 0x2000);
  as_.jump(kAboveEqual, aside([this, i, dots, done] {
             as_.alu(Alu::kCmp, rax, 0x8000);
             as_.jump(kAboveEqual, done);
             as_.lea(rcx, Mem{kNow, -dots});
             as_.call(to_.write);
             if (access(i).leaves) leave_if_due(i.next);
             as_.jump(done);
           }));
  as_.alu(Alu::kAnd, rax, 0x7FF);
  as_.mov8(ram(0, rax), rdx);
  as_.bind(done);
}

void Emitter::leave_if_due(uint16_t next) {
  const Label out = aside([this, next] { leave(next); });
  as_.alu8(Alu::kCmp, field(offsetof(Machine, nmi)), static_cast<uint8_t>(NmiState::kNone));
  as_.jump(kNotEqual, out);
  as_.alu(Alu::kCmp, kNow, kLimit);
  as_.jump(kGreater, out);
}

/// What an instruction reads. RAX, RCX and RDX may be used up.
Operand Emitter::operand(const Instruction& i, Mode mode) {
  const auto& info = opcodes::kTable[i.opcode];
  if (mode == Mode::kImmediate) return static_cast<uint8_t>(i.operand);
  const Access where = access(i);
  if (where.indexed && (where.in_ram || where.in_rom)) {
    indexed_penalty(i.operand, index_of(mode));
  }
  if (where.in_ram) return in_ram(i, mode);
  if (where.in_rom && !where.indexed) return cart_.read(i.operand);
  if (where.in_rom) return prg(i.operand, index_of(mode));
  spend();
  if (mode == Mode::kAbsolute) {
    read_constant(i.operand, info.cycles * kDots);
  } else {
    address(i, mode, true);
    read_anywhere(info.cycles * kDots, true);
  }
  return rax;
}

void Emitter::alu8(Alu op, Reg to, const Operand& value) {
  std::visit([&](const auto& v) { as_.alu8(op, to, v); }, value);
}

void Emitter::load(Reg to, const Operand& value) {
  if (const auto* number = std::get_if<uint8_t>(&value)) {
    as_.mov(to, *number);
  } else if (const auto* mem = std::get_if<Mem>(&value)) {
    as_.movzx8(to, *mem);
  } else {
    as_.mov(to, std::get<Reg>(value));
  }
}

void Emitter::push(Reg reg) {
  as_.mov8(ram(0x100, kS), reg);
  as_.dec8(kS);
}

void Emitter::pull(Reg reg) {
  as_.inc8(kS);
  as_.movzx8(reg, ram(0x100, kS));
}

}  // namespace wz::native
