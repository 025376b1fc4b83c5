#include "native/analysis.hpp"
#include "native/emitter.hpp"

namespace wz::native {

namespace {

using namespace x86;
using opcodes::Mode;
using opcodes::Op;

constexpr int kDots = timing::kDotsPerCycle;

}  // namespace

MachineCode Emitter::run() {
  MachineCode code;
  code.run = emit_frame(as_, to_);
  for (auto it = flow_.code.begin(); it != flow_.code.end();) {
    const uint16_t pc = *it;
    const Instruction i = decode(cart_, pc);
    if (flags_.joins(pc)) {
      spend();
      in_host_ = 0;
    }
    as_.bind(labels_[pc]);
    instruction(i);
    ++it;
  }
  while (as_.here() % 4) as_.trap();
  as_.bind(to_.table);
  const size_t table = as_.here();
  code.entry.resize(0x8000);
  for (unsigned pc = 0x8000; pc <= 0xFFFF; ++pc) {
    const uint16_t at = static_cast<uint16_t>(pc);
    const bool enters = flow_.entries.contains(at) && known(at);
    as_.word(static_cast<uint32_t>(as_.at(enters ? labels_[at] : to_.leave) - table));
    code.entry[pc - 0x8000] = may_enter(cart_, flow_, at);
  }
  as_.finish();
  code.bytes = as_.bytes();
  code.slack = slack(cart_, flow_);
  return code;
}

void Emitter::instruction(const Instruction& i) {
  const auto& info = opcodes::kTable[i.opcode];
  if (stops(i)) {
    leave(i.pc);
    write_asides();
    return;
  }
  pending_ += info.cycles * kDots;
  if (is_branch(info.op)) {
    branch(i, info.op);
  } else if (info.op == Op::kJmp || info.op == Op::kJsr || info.op == Op::kRts ||
             info.op == Op::kRti) {
    spend();
    transfer(i, info.op, info.mode);
    write_asides();
    return;
  } else {
    plan_flags(i);
    effect(i, info.op, info.mode);
    in_host_ = wanted_;
  }
  // The next label is the next instruction only if no other one starts in between.
  const auto following = flow_.code.upper_bound(i.pc);
  if (following == flow_.code.end() || *following != i.next) {
    spend();
    go(i.next, i.pc);
    write_asides();
  }
}

void Emitter::spend() {
  if (pending_) as_.lea(kNow, Mem{kNow, pending_});
  pending_ = 0;
}

void Emitter::leave(uint16_t pc) {
  spend();
  as_.mov(rax, pc);
  as_.jump(to_.leave);
}

Label Emitter::aside(std::function<void()> code) {
  asides_.emplace_back(as_.label(), std::move(code));
  return asides_.back().first;
}

void Emitter::write_asides() {
  // One may add another.
  for (size_t i = 0; i < asides_.size(); ++i) {
    const auto [label, code] = asides_[i];
    pending_ = 0;
    as_.bind(label);
    code();
  }
  asides_.clear();
  pending_ = 0;
}

void Emitter::go(uint16_t target, uint16_t from) {
  if (!known(target)) {
    leave(target);
    return;
  }
  if (target > from) {
    as_.jump(labels_[target]);
    return;
  }
  as_.alu(Alu::kCmp, kNow, kLimit);
  as_.jump(kLessEqual, labels_[target]);
  leave(target);
}

void Emitter::branch(const Instruction& i, Op op) {
  const FlagSet flag = asked(op);
  Condition taken = kNotEqual;
  if (flag & in_host_) {
    switch (op) {
      case Op::kBpl:
        taken = opposite(kSign);
        break;
      case Op::kBmi:
        taken = kSign;
        break;
      case Op::kBcc:
        taken = borrow_ ? kBelow : kAboveEqual;
        break;
      case Op::kBcs:
        taken = borrow_ ? kAboveEqual : kBelow;
        break;
      case Op::kBeq:
        taken = kEqual;
        break;
      default:
        break;
    }
  } else {
    if (flag == kFlagC) {
      as_.test(kC, kC);
    } else if (flag == kFlagV) {
      as_.test(kV, kV);
    } else if (op == Op::kBpl || op == Op::kBmi) {
      as_.test(kNz, 0x180);
    } else {
      as_.test8(kNz, kNz);
    }
    const bool when_clear = op == Op::kBpl || op == Op::kBcc || op == Op::kBvc || op == Op::kBeq;
    taken = when_clear ? kEqual : kNotEqual;
    in_host_ = 0;
  }
  const bool far = ((i.next ^ i.operand) & 0xFF00) != 0;
  const int dots = pending_ + (far ? 2 : 1) * kDots;
  if (i.operand > i.pc) {
    as_.jump(taken, aside([this, dots, i] {
               pending_ = dots;
               spend();
               go(i.operand, i.pc);
             }));
    return;
  }
  const Label skip = as_.label();
  as_.jump(opposite(taken), skip);
  const int kept = std::exchange(pending_, dots);
  spend();
  if (polls(cart_, i)) {
    as_.mov(rax, cart_.read(static_cast<uint16_t>(i.operand + 4)));
    as_.call(to_.skip_poll);
  }
  go(i.operand, i.pc);
  as_.bind(skip);
  pending_ = kept;
}

void Emitter::transfer(const Instruction& i, Op op, Mode mode) {
  switch (op) {
    case Op::kJmp:
      if (mode == Mode::kAbsolute) {
        go(i.operand, i.pc);
        return;
      }
      // The 6502 does not carry into the high byte of the pointer.
      read_constant(i.operand, 5 * kDots);
      as_.mov(slot(kAddressSlot), rax);
      read_constant((i.operand & 0xFF00u) | ((i.operand + 1u) & 0xFF), 5 * kDots);
      as_.shift(Shift::kShl, rax, 8);
      as_.alu(Alu::kOr, rax, slot(kAddressSlot));
      break;
    case Op::kJsr: {
      const unsigned back = i.next - 1u;
      as_.mov8(ram(0x100, kS), static_cast<uint8_t>(back >> 8));
      as_.dec8(kS);
      as_.mov8(ram(0x100, kS), static_cast<uint8_t>(back));
      as_.dec8(kS);
      go(i.operand, 0xFFFF);  // time is checked at every call
      return;
    }
    case Op::kRts:
      pull(rax);
      pull(rcx);
      as_.shift(Shift::kShl, rcx, 8);
      as_.lea(rax, Mem{rax, 1, rcx});
      as_.movzx16(rax, rax);
      break;
    default:
      pull(rax);
      as_.call(to_.unpack);
      pull(rax);
      pull(rcx);
      as_.shift(Shift::kShl, rcx, 8);
      as_.alu(Alu::kOr, rax, rcx);
  }
  emit_dispatch(as_, to_);
}

MachineCode emit(const Cartridge& cart) { return Emitter(cart).run(); }

}  // namespace wz::native
