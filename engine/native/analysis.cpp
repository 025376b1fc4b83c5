#include "native/analysis.hpp"

#include <algorithm>
#include <map>

#include "nes/machine.hpp"

namespace wz::native {

using opcodes::Mode;
using opcodes::Op;

bool is_store(Op op) { return op == Op::kSta || op == Op::kStx || op == Op::kSty; }

bool is_modify(Op op) {
  return op == Op::kAsl || op == Op::kLsr || op == Op::kRol || op == Op::kRor || op == Op::kInc ||
         op == Op::kDec;
}

bool is_branch(Op op) {
  return op == Op::kBpl || op == Op::kBmi || op == Op::kBvc || op == Op::kBvs || op == Op::kBcc ||
         op == Op::kBcs || op == Op::kBne || op == Op::kBeq;
}

Access access(const Instruction& i) {
  const auto& info = opcodes::kTable[i.opcode];
  const unsigned base = i.operand;
  Access a;
  a.reads = !is_store(info.op);
  a.writes = is_store(info.op) || is_modify(info.op);
  a.indexed = info.mode == Mode::kAbsoluteX || info.mode == Mode::kAbsoluteY;
  a.zero_page = info.mode == Mode::kZeroPage || info.mode == Mode::kZeroPageX ||
                info.mode == Mode::kZeroPageY;
  a.last = base + (a.indexed ? 0xFFu : 0u);
  const bool constant = info.mode == Mode::kAbsolute || a.indexed;
  a.in_ram = a.zero_page || (constant && a.last < 0x2000);
  a.in_rom = constant && base >= 0x8000 && a.last <= 0xFFFF;
  const bool io = a.last >= 0x2000 && a.last < 0x8000;
  const bool pointed = info.mode == Mode::kIndirectX || info.mode == Mode::kIndirectY;
  a.leaves = a.writes &&
             (pointed ||
              (constant && io && (a.indexed || base == 0x4014 || (base < 0x4000 && !(base & 7)))));
  return a;
}

bool stops(const Instruction& i) {
  const auto& info = opcodes::kTable[i.opcode];
  const bool waits = info.op == Op::kJmp && info.mode == Mode::kAbsolute && i.operand == i.pc;
  return info.op == Op::kIllegal || info.op == Op::kBrk || waits;
}

bool polls(const Cartridge& cart, const Instruction& i) {
  return i.operand == static_cast<uint16_t>(i.next - 7) && cart.read(i.operand) == 0xAD &&
         cart.read16(static_cast<uint16_t>(i.operand + 1)) == 0x2002 &&
         cart.read(static_cast<uint16_t>(i.operand + 3)) == 0x29;
}

bool may_enter(const Cartridge& cart, const Flow& flow, uint16_t pc) {
  return flow.entries.contains(pc) && flow.code.contains(pc) && !stops(decode(cart, pc));
}

/// Between checks control only moves to higher addresses, so one sweep from the end finds the
/// longest path.
int32_t slack(const Cartridge& cart, const Flow& flow) {
  constexpr int kPenalties = 2;
  std::map<uint16_t, int> longest;
  int worst = 0;
  for (auto it = flow.code.rbegin(); it != flow.code.rend(); ++it) {
    const Instruction i = decode(cart, *it);
    const auto& info = opcodes::kTable[i.opcode];
    int after = 0;
    const auto reach = [&](uint16_t target) {
      const auto found = target > i.pc ? longest.find(target) : longest.end();
      if (found != longest.end()) after = std::max(after, found->second);
    };
    const bool ends = info.op == Op::kJmp || info.op == Op::kJsr || info.op == Op::kRts ||
                      info.op == Op::kRti || info.op == Op::kIllegal || info.op == Op::kBrk;
    if (!ends) reach(i.next);
    if (is_branch(info.op) || (info.op == Op::kJmp && info.mode == Mode::kAbsolute)) {
      reach(i.operand);
    }
    longest[i.pc] = after + (info.cycles + kPenalties) * timing::kDotsPerCycle;
    worst = std::max(worst, longest[i.pc]);
  }
  return worst + timing::kDotsPerCycle;
}

}  // namespace wz::native
