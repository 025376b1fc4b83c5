#include "native/flow.hpp"

#include <algorithm>

#include "nes/opcodes.hpp"

namespace wz::native {
namespace {

using opcodes::Mode;
using opcodes::Op;

constexpr uint16_t kVectors[] = {0xFFFA, 0xFFFC, 0xFFFE};

/// The dispatcher that takes a table of addresses from behind the call: ASL A, TAY, pull the
/// return address into a pointer, fetch entry A through it, JMP to it.
constexpr uint8_t kJumpEngine[] = {0x0A, 0xA8, 0x68, 0x85, 0x04, 0x68, 0x85, 0x05, 0xC8, 0xB1, 0x04,
                                   0x85, 0x06, 0xC8, 0xB1, 0x04, 0x85, 0x07, 0x6C, 0x06, 0x00};
constexpr unsigned kLongestTable = 64;

class Walk {
 public:
  explicit Walk(const Cartridge& cart) : cart_(cart) {
    const auto found = std::search(cart.prg.begin(), cart.prg.end(), std::begin(kJumpEngine),
                                   std::end(kJumpEngine));
    if (found != cart.prg.end()) {
      engine_ = static_cast<uint16_t>(0x8000 + (found - cart.prg.begin()));
    }
  }

  Flow run() {
    for (const uint16_t vector : kVectors) enter(cart_.read16(vector));
    while (!todo_.empty()) {
      const uint16_t pc = todo_.back();
      todo_.pop_back();
      follow(pc);
    }
    return std::move(flow_);
  }

 private:
  void add(uint16_t pc) {
    // An instruction must end inside the ROM; the vectors at its end are not code.
    if (pc >= 0x8000 && pc < 0xFFFA && !flow_.code.contains(pc)) todo_.push_back(pc);
  }
  void enter(uint16_t pc) {
    if (pc < 0x8000) return;
    flow_.entries.insert(pc);
    add(pc);
  }

  void table(uint16_t at) {
    // The code behind a table is usually one of its targets: stop at the first one.
    unsigned end = std::min(0xFFFAu, at + 2 * kLongestTable);
    for (unsigned p = at; p + 1 < end; p += 2) {
      const uint16_t target = cart_.read16(static_cast<uint16_t>(p));
      if (target < 0x8000) return;
      enter(target);
      if (target > p) end = std::min<unsigned>(end, target);
    }
  }

  /// Follows one straight line of instructions.
  void follow(uint16_t pc) {
    while (pc >= 0x8000 && pc < 0xFFFA && flow_.code.insert(pc).second) {
      const Instruction i = decode(cart_, pc);
      const auto& info = opcodes::kTable[i.opcode];
      if (info.op == Op::kIllegal || info.op == Op::kBrk) return;
      if (info.op == Op::kRts || info.op == Op::kRti) return;
      if (info.mode == Mode::kRelative) add(i.operand);
      if (info.op == Op::kJmp) {
        if (info.mode == Mode::kAbsolute) add(i.operand);
        return;
      }
      if (info.op == Op::kJsr) {
        add(i.operand);
        if (engine_ && i.operand == engine_) {
          table(i.next);
          return;
        }
        enter(i.next);
      }
      pc = i.next;
    }
  }

  const Cartridge& cart_;
  uint16_t engine_ = 0;
  Flow flow_;
  std::vector<uint16_t> todo_;
};

}  // namespace

Instruction decode(const Cartridge& cart, uint16_t pc) {
  Instruction i;
  i.pc = pc;
  i.opcode = cart.read(pc);
  const Mode mode = opcodes::kTable[i.opcode].mode;
  const int length = opcodes::length(mode);
  i.next = static_cast<uint16_t>(pc + length);
  const uint16_t at = static_cast<uint16_t>(pc + 1);
  if (length == 3) {
    i.operand = cart.read16(at);
  } else if (length == 2) {
    i.operand = cart.read(at);
    if (mode == Mode::kRelative) {
      i.operand = static_cast<uint16_t>(i.next + static_cast<int8_t>(i.operand));
    }
  }
  return i;
}

Flow discover(const Cartridge& cart) { return Walk(cart).run(); }

}  // namespace wz::native
