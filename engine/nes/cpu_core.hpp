#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "nes/bus.hpp"
#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

/// What the interpreter's instructions are made of: registers, flags, addressing modes. Private to
/// cpu.cpp.
namespace wz::cpu {

static_assert(std::endian::native == std::endian::little);

constexpr uint8_t kC = 0x01, kZ = 0x02, kI = 0x04, kD = 0x08, kB = 0x10, kU = 0x20, kV = 0x40,
                  kN = 0x80;
constexpr uint16_t kNmiVector = 0xFFFA, kIrqVector = 0xFFFE;
constexpr int32_t kCycle = timing::kDotsPerCycle;

constexpr bool crosses_page(unsigned from, unsigned to) { return ((from ^ to) & 0xFF00) != 0; }

/// Everything here is forced inline so that the registers stay in registers: `Core` never leaves
/// `cpu::run`, only the machine does.
#define WZ_INLINE [[gnu::always_inline]] inline

struct Core {
  Machine& m;
  const Cartridge& cart;
  int32_t stop = 0;  ///< the deadline, or sooner when an interrupt has been raised
  int32_t now = m.now;
  int32_t start = now;  ///< of the instruction that is running
  uint32_t code = 0;
  uint16_t pc = m.cpu.pc;
  uint8_t a = m.cpu.a, x = m.cpu.x, y = m.cpu.y, s = m.cpu.s;
  // Flags, few enough to live in registers: Z is set when the low byte of nz is zero, N when bit 7
  // or bit 8 is set; `rest` holds V, I and D in their places.
  uint32_t nz = 0;
  uint8_t c = 0, rest = 0;

  WZ_INLINE Core(Machine& machine, const Cartridge& cartridge) : m(machine), cart(cartridge) {
    set_flags(m.cpu.p);
  }

  WZ_INLINE void reload() {
    now = m.now;
    pc = m.cpu.pc;
    a = m.cpu.a, x = m.cpu.x, y = m.cpu.y, s = m.cpu.s;
    set_flags(m.cpu.p);
  }
  WZ_INLINE void save() const {
    m.now = now;
    m.cpu = {pc, a, x, y, s, flags()};
  }

  // Flags.
  WZ_INLINE bool negative() const { return (nz & 0x180) != 0; }
  WZ_INLINE bool zero() const { return (nz & 0xFF) == 0; }
  WZ_INLINE uint8_t flags() const {
    return static_cast<uint8_t>((negative() ? kN : 0) | kU | rest | (zero() ? kZ : 0) | c);
  }
  WZ_INLINE void set_flags(uint8_t p) {
    nz = static_cast<uint32_t>(p & kN) << 1 | (~p & kZ);
    c = p & kC;
    rest = p & (kV | kI | kD);
  }
  WZ_INLINE void set(uint8_t& reg, int value) { nz = reg = static_cast<uint8_t>(value); }

  // The instruction stream: up to three bytes, the next one in the low bits of `code`.
  WZ_INLINE void fetch() {
    if (pc >= 0x8000 && pc < 0xFFFC) [[likely]] {
      std::memcpy(&code, &cart.prg[pc & 0x7FFF], sizeof code);
    } else {
      code = load(pc);
      code |= static_cast<uint32_t>(load(static_cast<uint16_t>(pc + 1))) << 8;
      code |= static_cast<uint32_t>(load(static_cast<uint16_t>(pc + 2))) << 16;
    }
  }
  WZ_INLINE uint8_t next() {
    const uint8_t byte = static_cast<uint8_t>(code);
    code >>= 8;
    ++pc;
    return byte;
  }

  // Memory.
  WZ_INLINE uint8_t load(uint16_t address) { return bus::read(m, cart, address, start, now); }
  WZ_INLINE void store(uint16_t address, uint8_t value) {
    now = bus::write(m, cart, address, value, start, now);
    if (address >= 0x2000 && m.nmi != NmiState::kNone) stop = now;
  }
  WZ_INLINE void push(unsigned value) { m.ram[0x100 | s--] = static_cast<uint8_t>(value); }
  WZ_INLINE uint8_t pull() { return m.ram[0x100 | ++s]; }
  WZ_INLINE uint16_t zero_page_word(uint8_t at) {
    return static_cast<uint16_t>(m.ram[at] | m.ram[static_cast<uint8_t>(at + 1)] << 8);
  }

  // Addressing modes. Reads pay for a crossed page; writes have the extra cycle in their count.
  template <bool kPenalty>
  WZ_INLINE uint16_t indexed(uint16_t base, uint8_t index) {
    const uint16_t address = static_cast<uint16_t>(base + index);
    if (kPenalty && crosses_page(base, address)) now += kCycle;
    return address;
  }
  WZ_INLINE uint16_t zero_page() { return next(); }
  WZ_INLINE uint16_t zero_page_x() { return static_cast<uint8_t>(next() + x); }
  WZ_INLINE uint16_t zero_page_y() { return static_cast<uint8_t>(next() + y); }
  WZ_INLINE uint16_t absolute() {
    const uint16_t low = next();
    return static_cast<uint16_t>(low | next() << 8);
  }
  template <bool kPenalty>
  WZ_INLINE uint16_t absolute_x() {
    return indexed<kPenalty>(absolute(), x);
  }
  template <bool kPenalty>
  WZ_INLINE uint16_t absolute_y() {
    return indexed<kPenalty>(absolute(), y);
  }
  WZ_INLINE uint16_t indirect_x() { return zero_page_word(static_cast<uint8_t>(next() + x)); }
  template <bool kPenalty>
  WZ_INLINE uint16_t indirect_y() {
    return indexed<kPenalty>(zero_page_word(next()), y);
  }

  // Arithmetic. The NES CPU has no decimal mode: D is stored and ignored.
  WZ_INLINE void add(int value) {
    const int operand = value & 0xFF;
    const int sum = a + operand + c;
    const int overflow = (~(a ^ operand) & (a ^ sum)) & 0x80;
    rest = static_cast<uint8_t>((rest & ~kV) | overflow >> 1);
    c = sum > 0xFF;
    set(a, sum);
  }
  WZ_INLINE void compare(uint8_t reg, uint8_t value) {
    c = reg >= value;
    nz = static_cast<uint8_t>(reg - value);
  }
  WZ_INLINE void bit(uint8_t value) {
    nz = static_cast<uint32_t>(value & kN) << 1 | (a & value ? 1 : 0);
    rest = static_cast<uint8_t>((rest & ~kV) | (value & kV));
  }
  WZ_INLINE uint8_t result(unsigned value) {
    const uint8_t byte = static_cast<uint8_t>(value);
    nz = byte;
    return byte;
  }
  WZ_INLINE uint8_t asl(uint8_t value) {
    c = value >> 7;
    return result(static_cast<unsigned>(value) << 1);
  }
  WZ_INLINE uint8_t lsr(uint8_t value) {
    c = value & 1;
    return result(value >> 1);
  }
  WZ_INLINE uint8_t rol(uint8_t value) {
    const unsigned carry = c;
    c = value >> 7;
    return result(static_cast<unsigned>(value) << 1 | carry);
  }
  WZ_INLINE uint8_t ror(uint8_t value) {
    const unsigned carry = c;
    c = value & 1;
    return result(value >> 1 | carry << 7);
  }
  WZ_INLINE uint8_t inc(uint8_t value) { return result(value + 1u); }
  WZ_INLINE uint8_t dec(uint8_t value) { return result(value - 1u); }
  template <typename F>
  WZ_INLINE void modify(uint16_t address, F&& operation) {
    store(address, operation(load(address)));
  }

  // Control flow.
  WZ_INLINE void branch(bool taken) {
    const int offset = static_cast<int8_t>(next());
    if (!taken) return;
    const uint16_t target = static_cast<uint16_t>(pc + offset);
    now += crosses_page(pc, target) ? 2 * kCycle : kCycle;
    pc = target;
    if (offset == -7) skip_poll();
  }
  /// `LDA $2002 / AND #mask / branch back`: the wait for sprite 0.
  WZ_INLINE void skip_poll() {
    if (pc < 0x8000 || pc >= 0xFFF0) return;
    const uint8_t* loop = &cart.prg[pc & 0x7FFF];
    if (loop[0] == 0xAD && loop[1] == 0x02 && loop[2] == 0x20 && loop[3] == 0x29) {
      now = bus::skip_poll(&m, &cart, loop[4], now, stop);
    }
  }
  WZ_INLINE void jump(uint16_t target) {
    // A jump to itself waits for an interrupt: go straight to the deadline.
    if (target == static_cast<uint16_t>(pc - 3) && now < stop) {
      now += (stop - now + 3 * kCycle - 1) / (3 * kCycle) * (3 * kCycle);
    }
    pc = target;
  }
  WZ_INLINE void jump_indirect() {
    const uint16_t at = absolute();
    // The 6502 does not carry into the high byte of the pointer.
    const unsigned high = (at & 0xFF00u) | ((at + 1u) & 0xFFu);
    pc = static_cast<uint16_t>(load(at) | load(static_cast<uint16_t>(high)) << 8);
  }
  WZ_INLINE void push_word(unsigned value) {
    push(value >> 8);
    push(value & 0xFF);
  }
  WZ_INLINE uint16_t pull_word() {
    const unsigned low = pull();
    return static_cast<uint16_t>(low | static_cast<unsigned>(pull()) << 8);
  }
  WZ_INLINE void jsr() {
    const uint16_t target = absolute();
    push_word(static_cast<uint16_t>(pc - 1));
    pc = target;
  }
  WZ_INLINE void rts() { pc = static_cast<uint16_t>(pull_word() + 1); }
  WZ_INLINE void rti() {
    set_flags(pull());
    pc = pull_word();
  }
  WZ_INLINE void interrupt(uint16_t vector, unsigned pushed_flags) {
    push_word(pc);
    push(pushed_flags);
    rest |= kI;
    pc = cart.read16(vector);
  }
  WZ_INLINE void brk() {
    ++pc;
    interrupt(kIrqVector, flags() | kB);
  }

  /// Runs one instruction.
  void execute();
};

#undef WZ_INLINE

}  // namespace wz::cpu
