#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "native/emit.hpp"
#include "native/emit_frame.hpp"
#include "native/flags.hpp"
#include "native/flow.hpp"
#include "native/x86.hpp"
#include "nes/opcodes.hpp"

/// The emitter: one template for each instruction of the 6502. Private to emit.cpp (time and
/// control), emit_operands.cpp and emit_effects.cpp.
namespace wz::native {

/// A value to be read: a number, a byte in memory, or a register.
using Operand = std::variant<uint8_t, x86::Mem, x86::Reg>;

class Emitter {
 public:
  explicit Emitter(const Cartridge& cart)
      : cart_(cart), flow_(discover(cart)), flags_(cart, flow_), to_(as_) {
    for (const uint16_t pc : flow_.code) labels_[pc] = as_.label();
  }

  MachineCode run();

 private:
  void instruction(const Instruction& i);
  void branch(const Instruction& i, opcodes::Op op);
  void transfer(const Instruction& i, opcodes::Op op, opcodes::Mode mode);
  void effect(const Instruction& i, opcodes::Op op, opcodes::Mode mode);
  void add(const Operand& value, Carry carry);
  void subtract(const Operand& value, Carry carry);
  void compare(x86::Reg reg, const Operand& value);
  void bit(const Operand& value);
  void store(const Instruction& i, opcodes::Mode mode, x86::Reg reg);
  void modify(const Instruction& i, opcodes::Op op, opcodes::Mode mode);
  void change(opcodes::Op op, x86::Reg reg);
  void change(opcodes::Op op, const x86::Mem& at);
  void plan_flags(const Instruction& i);
  void set_nz(x86::Reg reg, bool in_host);
  void set_carry(bool borrow);

  Operand operand(const Instruction& i, opcodes::Mode mode);
  x86::Mem in_ram(const Instruction& i, opcodes::Mode mode);
  void address(const Instruction& i, opcodes::Mode mode, bool penalty);
  void indexed_penalty(unsigned base, x86::Reg index);
  void read_anywhere(int dots, bool penalty);
  void read_constant(unsigned address, int dots);
  void write_anywhere(const Instruction& i, int dots);
  void leave_if_due(uint16_t next);
  void alu8(x86::Alu op, x86::Reg to, const Operand& value);
  void load(x86::Reg to, const Operand& value);
  void push(x86::Reg reg);
  void pull(x86::Reg reg);

  void spend();
  void go(uint16_t target, uint16_t from);
  void leave(uint16_t pc);
  /// Code for what seldom happens. It is written out behind the next jump that is always taken, so
  /// that it is near and never in the way.
  x86::Label aside(std::function<void()> code);
  void write_asides();

  bool known(uint16_t pc) const { return flow_.code.contains(pc); }
  static x86::Reg index_of(opcodes::Mode mode) {
    return mode == opcodes::Mode::kAbsoluteY || mode == opcodes::Mode::kZeroPageY ||
                   mode == opcodes::Mode::kIndirectY
               ? kY
               : kX;
  }

  const Cartridge& cart_;
  const Flow flow_;
  const Flags flags_;
  x86::Assembler as_;
  const Routines to_;
  std::map<uint16_t, x86::Label> labels_;
  std::vector<std::pair<x86::Label, std::function<void()>>> asides_;

  int pending_ = 0;      ///< dots that have passed and are not yet added to the host's `now`
  FlagSet needed_ = 0;   ///< flags that this instruction must leave in their registers
  FlagSet wanted_ = 0;   ///< flags that branches right behind it take from the host's flags
  FlagSet in_host_ = 0;  ///< flags that the host's flags hold now
  bool borrow_ = false;  ///< the host's carry flag is the opposite of the 6502's
};

}  // namespace wz::native
