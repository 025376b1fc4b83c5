#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// The few instructions of x86-64 that the emitter needs, as bytes.
namespace wz::native::x86 {

// clang-format off
enum Reg : uint8_t { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15 };
// clang-format on

/// Conditions by their numbers in the encoding; the one with the last bit flipped is the opposite.
enum Condition : uint8_t {
  kOverflow = 0,
  kBelow = 2,
  kAboveEqual = 3,
  kEqual = 4,
  kNotEqual = 5,
  kSign = 8,
  kLessEqual = 14,
  kGreater = 15
};
inline Condition opposite(Condition c) { return static_cast<Condition>(c ^ 1); }

enum class Alu : uint8_t { kAdd, kOr, kAdc, kSbb, kAnd, kSub, kXor, kCmp };
enum class Shift : uint8_t { kRcr = 3, kShl = 4, kShr = 5 };

/// base + index * 2^scale + disp
struct Mem {
  Reg base;
  int32_t disp = 0;
  int index = -1;
  int scale = 0;
};

/// A place in the code. It may be jumped to before it is bound.
using Label = size_t;

/// Instructions on bytes (`8`), words of 32 bits (no suffix) and pointers (`64`). Destinations come
/// first.
class Assembler {
 public:
  const std::vector<uint8_t>& bytes() const { return out_; }
  size_t here() const { return out_.size(); }

  Label label();
  void bind(Label label);
  /// Where a bound label is.
  size_t at(Label label) const { return static_cast<size_t>(places_[label]); }
  /// Fills in the distances to all labels; each must be bound.
  void finish();

  void mov(Reg to, Reg from) { rm(false, 0x8B, to, from); }
  void mov(Reg to, const Mem& from) { rm(false, 0x8B, to, from); }
  void mov(const Mem& to, Reg from) { rm(false, 0x89, from, to); }
  void mov(Reg to, uint32_t value);
  void mov64(Reg to, const Mem& from) { rm(true, 0x8B, to, from); }
  void mov64(const Mem& to, Reg from) { rm(true, 0x89, from, to); }
  void mov16(const Mem& to, Reg from);
  void mov8(const Mem& to, Reg from) { rm(false, 0x88, from, to, true); }
  void mov8(const Mem& to, uint8_t value);
  void movzx8(Reg to, Reg from) { rm(false, 0x0FB6, to, from, true); }
  void movzx8(Reg to, const Mem& from) { rm(false, 0x0FB6, to, from); }
  void movzx16(Reg to, Reg from) { rm(false, 0x0FB7, to, from); }
  void movzx16(Reg to, const Mem& from) { rm(false, 0x0FB7, to, from); }
  void movsxd(Reg to, const Mem& from) { rm(true, 0x63, to, from); }
  /// Adds without touching the flags.
  void lea(Reg to, const Mem& from) { rm(false, 0x8D, to, from); }
  void lea64(Reg to, const Mem& from) { rm(true, 0x8D, to, from); }
  void lea64(Reg to, Label label);

  void alu(Alu op, Reg to, Reg from) { rm(false, code(op) | 3, to, from); }
  void alu(Alu op, Reg to, const Mem& from) { rm(false, code(op) | 3, to, from); }
  void alu(Alu op, Reg to, int32_t value);
  void alu(Alu op, const Mem& to, int8_t value);
  void alu8(Alu op, Reg to, Reg from) { rm(false, code(op) | 2, to, from, true); }
  void alu8(Alu op, Reg to, const Mem& from) { rm(false, code(op) | 2, to, from, true); }
  void alu8(Alu op, Reg to, uint8_t value);
  void alu8(Alu op, const Mem& to, uint8_t value);
  void add64(Reg to, Reg from) { rm(true, 0x03, to, from); }
  void adjust_stack(int8_t by);
  void not_(Reg reg) { rm(false, 0xF7, 2, reg); }
  void test(Reg a, Reg b) { rm(false, 0x85, a, b); }
  void test8(Reg a, Reg b) { rm(false, 0x84, a, b, true); }
  void test(Reg reg, uint32_t value);
  void inc8(Reg reg) { rm(false, 0xFE, 0, reg, true); }
  void dec8(Reg reg) { rm(false, 0xFE, 1, reg, true); }
  void inc8(const Mem& at) { rm(false, 0xFE, 0, at); }
  void dec8(const Mem& at) { rm(false, 0xFE, 1, at); }
  void shift8(Shift op, Reg reg) { rm(false, 0xD0, static_cast<uint8_t>(op), reg, true); }
  void shift8(Shift op, const Mem& at) { rm(false, 0xD0, static_cast<uint8_t>(op), at); }
  void shift(Shift op, Reg reg, uint8_t by);
  /// The carry flag from bit 0.
  void carry_from(Reg reg);
  void stc() { byte(0xF9); }
  void set8(Condition condition, Reg reg) { rm(false, 0x0F90 | condition, 0, reg, true); }

  void jump(Label to);
  void jump(Condition condition, Label to);
  void jump(Reg to) { rm(false, 0xFF, 4, to); }
  void call(Label to);
  void call(const Mem& at) { rm(false, 0xFF, 2, at); }
  void ret() { byte(0xC3); }
  void push(Reg reg);
  void pop(Reg reg);
  void trap() { byte(0xCC); }
  void word(uint32_t value);

 private:
  static unsigned code(Alu op) { return static_cast<unsigned>(op) << 3; }
  void byte(unsigned value) { out_.push_back(static_cast<uint8_t>(value)); }
  void prefix(bool wide, unsigned reg, unsigned index, unsigned base, bool always);
  void opcode(unsigned code);
  void rm(bool wide, unsigned code, unsigned reg, Reg operand, bool bytes = false);
  void rm(bool wide, unsigned code, unsigned reg, const Mem& operand, bool bytes = false);
  void distance(Label to);

  std::vector<uint8_t> out_;
  std::vector<ptrdiff_t> places_;
  struct Use {
    size_t at;
    Label label;
  };
  std::vector<Use> uses_;
};

}  // namespace wz::native::x86
