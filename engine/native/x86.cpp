#include "native/x86.hpp"

#include <cstring>

namespace wz::native::x86 {

Label Assembler::label() {
  places_.push_back(-1);
  return places_.size() - 1;
}

void Assembler::bind(Label label) { places_[label] = static_cast<ptrdiff_t>(here()); }

void Assembler::finish() {
  for (const Use& use : uses_) {
    const auto from = static_cast<ptrdiff_t>(use.at + 4);
    const auto distance = static_cast<int32_t>(places_[use.label] - from);
    std::memcpy(&out_[use.at], &distance, sizeof distance);
  }
}

void Assembler::prefix(bool wide, unsigned reg, unsigned index, unsigned base, bool always) {
  const unsigned bits = (wide ? 8u : 0u) | (reg >> 3) << 2 | (index >> 3) << 1 | base >> 3;
  if (bits || always) byte(0x40 | bits);
}

void Assembler::opcode(unsigned code) {
  if (code > 0xFF) byte(code >> 8);
  byte(code);
}

void Assembler::rm(bool wide, unsigned code, unsigned reg, Reg operand, bool bytes) {
  // Without a prefix the numbers 4 to 7 mean AH, CH, DH and BH.
  prefix(wide, reg, 0, operand, bytes && ((reg | operand) & 4));
  opcode(code);
  byte(0xC0 | (reg & 7) << 3 | (operand & 7));
}

void Assembler::rm(bool wide, unsigned code, unsigned reg, const Mem& operand, bool bytes) {
  const bool indexed = operand.index >= 0;
  prefix(wide, reg, indexed ? static_cast<unsigned>(operand.index) : 0, operand.base,
         bytes && (reg & 4));
  opcode(code);
  const bool small = operand.disp >= -128 && operand.disp <= 127;
  const bool sib = indexed || (operand.base & 7) == rsp;
  byte((small ? 0x40u : 0x80u) | (reg & 7) << 3 | (sib ? 4u : operand.base & 7u));
  if (sib) {
    const unsigned index = indexed ? static_cast<unsigned>(operand.index) & 7 : 4u;
    byte(static_cast<unsigned>(operand.scale) << 6 | index << 3 | (operand.base & 7));
  }
  if (small) {
    byte(static_cast<unsigned>(operand.disp));
  } else {
    word(static_cast<uint32_t>(operand.disp));
  }
}

void Assembler::word(uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) byte(value >> shift);
}

void Assembler::distance(Label to) {
  uses_.push_back({here(), to});
  word(0);
}

void Assembler::mov(Reg to, uint32_t value) {
  prefix(false, 0, 0, to, false);
  byte(0xB8u | (to & 7u));
  word(value);
}

void Assembler::mov16(const Mem& to, Reg from) {
  byte(0x66);
  rm(false, 0x89, from, to);
}

void Assembler::mov8(const Mem& to, uint8_t value) {
  rm(false, 0xC6, 0, to);
  byte(value);
}

void Assembler::lea64(Reg to, Label label) {
  prefix(true, to, 0, 0, false);
  byte(0x8D);
  byte((to & 7u) << 3 | 5u);  // relative to the next instruction
  distance(label);
}

void Assembler::alu(Alu op, Reg to, int32_t value) {
  const bool small = value >= -128 && value <= 127;
  rm(false, small ? 0x83 : 0x81, static_cast<unsigned>(op), to);
  if (small) {
    byte(static_cast<unsigned>(value));
  } else {
    word(static_cast<uint32_t>(value));
  }
}

void Assembler::alu(Alu op, const Mem& to, int8_t value) {
  rm(false, 0x83, static_cast<unsigned>(op), to);
  byte(static_cast<unsigned>(value));
}

void Assembler::alu8(Alu op, Reg to, uint8_t value) {
  rm(false, 0x80, static_cast<unsigned>(op), to, true);
  byte(value);
}

void Assembler::alu8(Alu op, const Mem& to, uint8_t value) {
  rm(false, 0x80, static_cast<unsigned>(op), to);
  byte(value);
}

void Assembler::adjust_stack(int8_t by) {
  rm(true, 0x83, 0, rsp);
  byte(static_cast<unsigned>(by));
}

void Assembler::test(Reg reg, uint32_t value) {
  rm(false, 0xF7, 0, reg);
  word(value);
}

void Assembler::shift(Shift op, Reg reg, uint8_t by) {
  rm(false, 0xC1, static_cast<unsigned>(op), reg);
  byte(by);
}

void Assembler::carry_from(Reg reg) {
  rm(false, 0x0FBA, 4, reg);
  byte(0);
}

void Assembler::jump(Label to) {
  byte(0xE9);
  distance(to);
}

void Assembler::jump(Condition condition, Label to) {
  byte(0x0F);
  byte(0x80u | condition);
  distance(to);
}

void Assembler::call(Label to) {
  byte(0xE8);
  distance(to);
}

void Assembler::push(Reg reg) {
  prefix(false, 0, 0, reg, false);
  byte(0x50u | (reg & 7u));
}

void Assembler::pop(Reg reg) {
  prefix(false, 0, 0, reg, false);
  byte(0x58u | (reg & 7u));
}

}  // namespace wz::native::x86
