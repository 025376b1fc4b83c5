#include "nes/cpu.hpp"

#include <cstdio>

#include "nes/bus.hpp"
#include "nes/opcodes.hpp"

namespace wz {
namespace {

constexpr uint8_t kC = 0x01, kZ = 0x02, kI = 0x04, kD = 0x08, kB = 0x10, kU = 0x20, kV = 0x40,
                  kN = 0x80;
constexpr uint16_t kNmiVector = 0xFFFA, kIrqVector = 0xFFFE;
constexpr int32_t kCycle = timing::kDotsPerCycle;

constexpr bool crosses_page(unsigned from, unsigned to) { return ((from ^ to) & 0xFF00) != 0; }

std::string describe(uint16_t address, uint8_t opcode) {
  char text[80];
  std::snprintf(text, sizeof text, "illegal opcode $%02X at $%04X", opcode, address);
  return text;
}

/// Everything here is forced inline so that the registers stay in registers: `Core` never leaves
/// `cpu::run`, only the machine does.
#define WZ_INLINE [[gnu::always_inline]] inline

struct Core {
  Machine& m;
  const Cartridge& cart;
  int32_t deadline;
  int32_t now = m.now;
  int32_t start = now;  ///< of the instruction that is running
  uint16_t pc = m.cpu.pc;
  uint8_t a = m.cpu.a, x = m.cpu.x, y = m.cpu.y, s = m.cpu.s;
  uint8_t n = 0, z = 0, c = 0, v = 0, rest = 0;  ///< N is bit 7 of n; Z means z == 0

  WZ_INLINE Core(Machine& machine, const Cartridge& cartridge, int32_t until)
      : m(machine), cart(cartridge), deadline(until) {
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
  WZ_INLINE uint8_t flags() const {
    return static_cast<uint8_t>((n & kN) | (v ? kV : 0) | kU | rest | (z ? 0 : kZ) | c);
  }
  WZ_INLINE void set_flags(uint8_t p) {
    n = p;
    z = static_cast<uint8_t>(~p & kZ);
    c = p & kC;
    v = p & kV;
    rest = p & (kI | kD);
  }
  WZ_INLINE void set(uint8_t& reg, int value) { reg = n = z = static_cast<uint8_t>(value); }

  // Memory.
  WZ_INLINE uint8_t code(unsigned address) {
    return bus::read(m, cart, static_cast<uint16_t>(address), start, now);
  }
  WZ_INLINE uint8_t next() { return code(pc++); }
  WZ_INLINE uint8_t load(uint16_t address) { return bus::read(m, cart, address, start, now); }
  WZ_INLINE void store(uint16_t address, uint8_t value) {
    now = bus::write(m, cart, address, value, start, now);
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
  WZ_INLINE uint16_t immediate() { return pc++; }
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
    v = static_cast<uint8_t>((~(a ^ operand) & (a ^ sum)) & 0x80);
    c = sum > 0xFF;
    set(a, sum);
  }
  WZ_INLINE void compare(uint8_t reg, uint8_t value) {
    c = reg >= value;
    n = z = static_cast<uint8_t>(reg - value);
  }
  WZ_INLINE void bit(uint8_t value) {
    n = value;
    v = value & kV;
    z = a & value;
  }
  WZ_INLINE uint8_t result(unsigned value) { return n = z = static_cast<uint8_t>(value); }
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
    if (code(pc) == 0xAD && code(pc + 1u) == 0x02 && code(pc + 2u) == 0x20 &&
        code(pc + 3u) == 0x29) {
      now = bus::skip_poll(&m, &cart, code(pc + 4u), now, deadline);
    }
  }
  WZ_INLINE void jump(uint16_t target) {
    // A jump to itself waits for an interrupt: go straight to the deadline.
    if (target == static_cast<uint16_t>(pc - 3) && m.nmi == NmiState::kNone && now < deadline) {
      now += (deadline - now + 3 * kCycle - 1) / (3 * kCycle) * (3 * kCycle);
    }
    pc = target;
  }
  WZ_INLINE void jump_indirect() {
    const uint16_t at = absolute();
    // The 6502 does not carry into the high byte of the pointer.
    const unsigned high = (at & 0xFF00u) | ((at + 1u) & 0xFFu);
    pc = static_cast<uint16_t>(code(at) | code(high) << 8);
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

  [[gnu::noinline, gnu::cold, noreturn]] void illegal(uint8_t opcode) {
    --pc;
    save();
    throw IllegalOpcode(pc, opcode);
  }

  WZ_INLINE void execute() {
    start = now;
    const uint8_t opcode = next();
    now += opcodes::kTable[opcode].cycles * kCycle;
    switch (opcode) {
      // clang-format off
      case 0x00: brk(); break;
      case 0x01: set(a, a | load(indirect_x())); break;
      case 0x05: set(a, a | load(zero_page())); break;
      case 0x06: modify(zero_page(), [this](uint8_t value) { return asl(value); }); break;
      case 0x08: push(flags() | kB); break;
      case 0x09: set(a, a | load(immediate())); break;
      case 0x0A: a = asl(a); break;
      case 0x0D: set(a, a | load(absolute())); break;
      case 0x0E: modify(absolute(), [this](uint8_t value) { return asl(value); }); break;
      case 0x10: branch(!(n & 0x80)); break;
      case 0x11: set(a, a | load(indirect_y<true>())); break;
      case 0x15: set(a, a | load(zero_page_x())); break;
      case 0x16: modify(zero_page_x(), [this](uint8_t value) { return asl(value); }); break;
      case 0x18: c = 0; break;
      case 0x19: set(a, a | load(absolute_y<true>())); break;
      case 0x1D: set(a, a | load(absolute_x<true>())); break;
      case 0x1E: modify(absolute_x<false>(), [this](uint8_t value) { return asl(value); }); break;
      case 0x20: jsr(); break;
      case 0x21: set(a, a & load(indirect_x())); break;
      case 0x24: bit(load(zero_page())); break;
      case 0x25: set(a, a & load(zero_page())); break;
      case 0x26: modify(zero_page(), [this](uint8_t value) { return rol(value); }); break;
      case 0x28: set_flags(pull()); break;
      case 0x29: set(a, a & load(immediate())); break;
      case 0x2A: a = rol(a); break;
      case 0x2C: bit(load(absolute())); break;
      case 0x2D: set(a, a & load(absolute())); break;
      case 0x2E: modify(absolute(), [this](uint8_t value) { return rol(value); }); break;
      case 0x30: branch(n & 0x80); break;
      case 0x31: set(a, a & load(indirect_y<true>())); break;
      case 0x35: set(a, a & load(zero_page_x())); break;
      case 0x36: modify(zero_page_x(), [this](uint8_t value) { return rol(value); }); break;
      case 0x38: c = 1; break;
      case 0x39: set(a, a & load(absolute_y<true>())); break;
      case 0x3D: set(a, a & load(absolute_x<true>())); break;
      case 0x3E: modify(absolute_x<false>(), [this](uint8_t value) { return rol(value); }); break;
      case 0x40: rti(); break;
      case 0x41: set(a, a ^ load(indirect_x())); break;
      case 0x45: set(a, a ^ load(zero_page())); break;
      case 0x46: modify(zero_page(), [this](uint8_t value) { return lsr(value); }); break;
      case 0x48: push(a); break;
      case 0x49: set(a, a ^ load(immediate())); break;
      case 0x4A: a = lsr(a); break;
      case 0x4C: jump(absolute()); break;
      case 0x4D: set(a, a ^ load(absolute())); break;
      case 0x4E: modify(absolute(), [this](uint8_t value) { return lsr(value); }); break;
      case 0x50: branch(!v); break;
      case 0x51: set(a, a ^ load(indirect_y<true>())); break;
      case 0x55: set(a, a ^ load(zero_page_x())); break;
      case 0x56: modify(zero_page_x(), [this](uint8_t value) { return lsr(value); }); break;
      case 0x58: rest &= ~kI; break;
      case 0x59: set(a, a ^ load(absolute_y<true>())); break;
      case 0x5D: set(a, a ^ load(absolute_x<true>())); break;
      case 0x5E: modify(absolute_x<false>(), [this](uint8_t value) { return lsr(value); }); break;
      case 0x60: rts(); break;
      case 0x61: add(load(indirect_x())); break;
      case 0x65: add(load(zero_page())); break;
      case 0x66: modify(zero_page(), [this](uint8_t value) { return ror(value); }); break;
      case 0x68: set(a, pull()); break;
      case 0x69: add(load(immediate())); break;
      case 0x6A: a = ror(a); break;
      case 0x6C: jump_indirect(); break;
      case 0x6D: add(load(absolute())); break;
      case 0x6E: modify(absolute(), [this](uint8_t value) { return ror(value); }); break;
      case 0x70: branch(v); break;
      case 0x71: add(load(indirect_y<true>())); break;
      case 0x75: add(load(zero_page_x())); break;
      case 0x76: modify(zero_page_x(), [this](uint8_t value) { return ror(value); }); break;
      case 0x78: rest |= kI; break;
      case 0x79: add(load(absolute_y<true>())); break;
      case 0x7D: add(load(absolute_x<true>())); break;
      case 0x7E: modify(absolute_x<false>(), [this](uint8_t value) { return ror(value); }); break;
      case 0x81: store(indirect_x(), a); break;
      case 0x84: store(zero_page(), y); break;
      case 0x85: store(zero_page(), a); break;
      case 0x86: store(zero_page(), x); break;
      case 0x88: set(y, y - 1); break;
      case 0x8A: set(a, x); break;
      case 0x8C: store(absolute(), y); break;
      case 0x8D: store(absolute(), a); break;
      case 0x8E: store(absolute(), x); break;
      case 0x90: branch(!c); break;
      case 0x91: store(indirect_y<false>(), a); break;
      case 0x94: store(zero_page_x(), y); break;
      case 0x95: store(zero_page_x(), a); break;
      case 0x96: store(zero_page_y(), x); break;
      case 0x98: set(a, y); break;
      case 0x99: store(absolute_y<false>(), a); break;
      case 0x9A: s = x; break;
      case 0x9D: store(absolute_x<false>(), a); break;
      case 0xA0: set(y, load(immediate())); break;
      case 0xA1: set(a, load(indirect_x())); break;
      case 0xA2: set(x, load(immediate())); break;
      case 0xA4: set(y, load(zero_page())); break;
      case 0xA5: set(a, load(zero_page())); break;
      case 0xA6: set(x, load(zero_page())); break;
      case 0xA8: set(y, a); break;
      case 0xA9: set(a, load(immediate())); break;
      case 0xAA: set(x, a); break;
      case 0xAC: set(y, load(absolute())); break;
      case 0xAD: set(a, load(absolute())); break;
      case 0xAE: set(x, load(absolute())); break;
      case 0xB0: branch(c); break;
      case 0xB1: set(a, load(indirect_y<true>())); break;
      case 0xB4: set(y, load(zero_page_x())); break;
      case 0xB5: set(a, load(zero_page_x())); break;
      case 0xB6: set(x, load(zero_page_y())); break;
      case 0xB8: v = 0; break;
      case 0xB9: set(a, load(absolute_y<true>())); break;
      case 0xBA: set(x, s); break;
      case 0xBC: set(y, load(absolute_x<true>())); break;
      case 0xBD: set(a, load(absolute_x<true>())); break;
      case 0xBE: set(x, load(absolute_y<true>())); break;
      case 0xC0: compare(y, load(immediate())); break;
      case 0xC1: compare(a, load(indirect_x())); break;
      case 0xC4: compare(y, load(zero_page())); break;
      case 0xC5: compare(a, load(zero_page())); break;
      case 0xC6: modify(zero_page(), [this](uint8_t value) { return dec(value); }); break;
      case 0xC8: set(y, y + 1); break;
      case 0xC9: compare(a, load(immediate())); break;
      case 0xCA: set(x, x - 1); break;
      case 0xCC: compare(y, load(absolute())); break;
      case 0xCD: compare(a, load(absolute())); break;
      case 0xCE: modify(absolute(), [this](uint8_t value) { return dec(value); }); break;
      case 0xD0: branch(z); break;
      case 0xD1: compare(a, load(indirect_y<true>())); break;
      case 0xD5: compare(a, load(zero_page_x())); break;
      case 0xD6: modify(zero_page_x(), [this](uint8_t value) { return dec(value); }); break;
      case 0xD8: rest &= ~kD; break;
      case 0xD9: compare(a, load(absolute_y<true>())); break;
      case 0xDD: compare(a, load(absolute_x<true>())); break;
      case 0xDE: modify(absolute_x<false>(), [this](uint8_t value) { return dec(value); }); break;
      case 0xE0: compare(x, load(immediate())); break;
      case 0xE1: add(load(indirect_x()) ^ 0xFF); break;
      case 0xE4: compare(x, load(zero_page())); break;
      case 0xE5: add(load(zero_page()) ^ 0xFF); break;
      case 0xE6: modify(zero_page(), [this](uint8_t value) { return inc(value); }); break;
      case 0xE8: set(x, x + 1); break;
      case 0xE9: add(load(immediate()) ^ 0xFF); break;
      case 0xEA:  break;
      case 0xEC: compare(x, load(absolute())); break;
      case 0xED: add(load(absolute()) ^ 0xFF); break;
      case 0xEE: modify(absolute(), [this](uint8_t value) { return inc(value); }); break;
      case 0xF0: branch(!z); break;
      case 0xF1: add(load(indirect_y<true>()) ^ 0xFF); break;
      case 0xF5: add(load(zero_page_x()) ^ 0xFF); break;
      case 0xF6: modify(zero_page_x(), [this](uint8_t value) { return inc(value); }); break;
      case 0xF8: rest |= kD; break;
      case 0xF9: add(load(absolute_y<true>()) ^ 0xFF); break;
      case 0xFD: add(load(absolute_x<true>()) ^ 0xFF); break;
      case 0xFE: modify(absolute_x<false>(), [this](uint8_t value) { return inc(value); }); break;
      // clang-format on
      default: illegal(opcode);
    }
  }
};

}  // namespace

IllegalOpcode::IllegalOpcode(uint16_t at, uint8_t code)
    : std::runtime_error(describe(at, code)), address(at), opcode(code) {}

namespace cpu {

int base_cycles(uint8_t opcode) { return opcodes::kTable[opcode].cycles; }

void run(Machine& m, const Cartridge& cart, const NativeCode* native, int32_t deadline) {
  static constexpr NativeIo kIo = {bus::read_io, bus::write_io, bus::skip_poll};
  Core core(m, cart, deadline);
  while (core.now < deadline) {
    if (m.nmi == NmiState::kDelayed) {
      m.nmi = NmiState::kPending;
    } else if (m.nmi == NmiState::kPending) {
      m.nmi = NmiState::kNone;
      core.now += 7 * kCycle;
      core.interrupt(kNmiVector, core.flags());
      if (core.now >= deadline) break;
    } else if (native && core.pc >= 0x8000 && native->entry[core.pc - 0x8000] &&
               core.now < deadline - native->slack) {
      core.save();
      native->run(&m, &cart, &kIo, deadline - native->slack);
      core.reload();
      continue;
    }
    core.execute();
  }
  core.save();
}

}  // namespace cpu
}  // namespace wz
