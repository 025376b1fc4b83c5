#include "native/flags.hpp"

#include "native/analysis.hpp"

namespace wz::native {
namespace {

using opcodes::Mode;
using opcodes::Op;

constexpr size_t kAddresses = 0x10000;

FlagSet written(Op op) {
  switch (op) {
    case Op::kAdc:
    case Op::kSbc:
    case Op::kPlp:
    case Op::kRti:
      return kAllFlags;
    case Op::kAsl:
    case Op::kLsr:
    case Op::kRol:
    case Op::kRor:
    case Op::kCmp:
    case Op::kCpx:
    case Op::kCpy:
      return kFlagNz | kFlagC;
    case Op::kBit:
      return kFlagNz | kFlagV;
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
    case Op::kClc:
    case Op::kSec:
      return kFlagC;
    case Op::kClv:
      return kFlagV;
    default:
      return 0;
  }
}

FlagSet read(Op op, Carry carry) {
  switch (op) {
    case Op::kAdc:
    case Op::kSbc:
      return carry == Carry::kUnknown ? kFlagC : 0;
    case Op::kRol:
    case Op::kRor:
      return kFlagC;
    case Op::kPhp:
      return kAllFlags;
    default:
      return asked(op);
  }
}

/// Control does not go on with the next instruction.
bool ends(const Instruction& i) {
  const Op op = opcodes::kTable[i.opcode].op;
  return op == Op::kJmp || op == Op::kJsr || op == Op::kRts || op == Op::kRti || stops(i);
}

Carry carry_after(Op op, Carry before) {
  if (op == Op::kClc || op == Op::kBcs) return Carry::kClear;  // a branch that is not taken
  if (op == Op::kSec || op == Op::kBcc) return Carry::kSet;
  return written(op) & kFlagC ? Carry::kUnknown : before;
}

}  // namespace

FlagSet asked(Op op) {
  if (op == Op::kBcc || op == Op::kBcs) return kFlagC;
  if (op == Op::kBvc || op == Op::kBvs) return kFlagV;
  return is_branch(op) ? kFlagNz : 0;
}

Flags::Flags(const Cartridge& cart, const Flow& flow)
    : flow_(flow),
      joins_(kAddresses),
      live_(kAddresses, kAllFlags),
      carry_(kAddresses, Carry::kUnknown) {
  for (const uint16_t pc : flow.entries) joins_[pc] = true;
  bool falls = false;
  uint16_t next = 0;
  for (const uint16_t pc : flow.code) {
    const Instruction i = decode(cart, pc);
    const auto& info = opcodes::kTable[i.opcode];
    const bool jumps = info.mode == Mode::kAbsolute && (info.op == Op::kJmp || info.op == Op::kJsr);
    if (is_branch(info.op) || jumps) joins_[i.operand] = true;
    // Instructions that overlap: the other one is reached by a jump.
    if (falls && next != pc) joins_[next] = true;
    if (!falls || next != pc) joins_[pc] = true;
    falls = !ends(i);
    next = i.next;
  }
  Carry carry = Carry::kUnknown;
  for (const uint16_t pc : flow.code) {
    if (joins_[pc]) carry = Carry::kUnknown;
    carry_[pc] = carry;
    carry = carry_after(opcodes::kTable[cart.read(pc)].op, carry);
  }
  // Every way back passes a check of the time, where all flags are live: one sweep is enough.
  for (auto it = flow.code.rbegin(); it != flow.code.rend(); ++it) {
    const Instruction i = decode(cart, *it);
    const Op op = opcodes::kTable[i.opcode].op;
    if (stops(i)) continue;
    live_[i.pc] = static_cast<FlagSet>((after(i) & ~written(op)) | read(op, carry_[i.pc]));
  }
}

FlagSet Flags::taken(const Instruction& i) const {
  return i.operand > i.pc && flow_.code.contains(i.operand) ? live_[i.operand] : kAllFlags;
}

FlagSet Flags::after(const Instruction& i) const {
  const auto& info = opcodes::kTable[i.opcode];
  if (info.op == Op::kJmp && info.mode == Mode::kAbsolute) return taken(i);
  if (ends(i)) return kAllFlags;
  if (access(i).leaves) return kAllFlags;
  const FlagSet next = flow_.code.contains(i.next) ? live_[i.next] : kAllFlags;
  return is_branch(info.op) ? static_cast<FlagSet>(next | taken(i)) : next;
}

}  // namespace wz::native
