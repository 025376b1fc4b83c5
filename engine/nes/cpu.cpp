#include "nes/cpu.hpp"

#include <array>
#include <cstdio>

#include "nes/cpu_core.hpp"
#include "nes/opcodes.hpp"

namespace wz {
namespace cpu {
namespace {

std::string describe(uint16_t address, uint8_t opcode) {
  char text[80];
  std::snprintf(text, sizeof text, "illegal opcode $%02X at $%04X", opcode, address);
  return text;
}

/// Apart from `Core` so that no pointer to it escapes.
[[gnu::noinline, gnu::cold, noreturn]] void throw_illegal(uint16_t address, uint8_t opcode) {
  throw IllegalOpcode(address, opcode);
}

constexpr auto kInstructionDots = [] {
  std::array<uint8_t, 256> dots{};
  for (unsigned i = 0; i < 256; ++i) {
    dots[i] = static_cast<uint8_t>(opcodes::kTable[i].cycles * kCycle);
  }
  return dots;
}();

}  // namespace

[[gnu::always_inline]] inline void Core::execute() {
  start = now;
  fetch();
  const uint8_t opcode = next();
  now += kInstructionDots[opcode];
  switch (opcode) {
      // clang-format off
    case 0x00: brk(); break;
    case 0x01: set(a, a | load(indirect_x())); break;
    case 0x05: set(a, a | load(zero_page())); break;
    case 0x06: modify(zero_page(), [this](uint8_t value) { return asl(value); }); break;
    case 0x08: push(flags() | kB); break;
    case 0x09: set(a, a | next()); break;
    case 0x0A: a = asl(a); break;
    case 0x0D: set(a, a | load(absolute())); break;
    case 0x0E: modify(absolute(), [this](uint8_t value) { return asl(value); }); break;
    case 0x10: branch(!negative()); break;
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
    case 0x29: set(a, a & next()); break;
    case 0x2A: a = rol(a); break;
    case 0x2C: bit(load(absolute())); break;
    case 0x2D: set(a, a & load(absolute())); break;
    case 0x2E: modify(absolute(), [this](uint8_t value) { return rol(value); }); break;
    case 0x30: branch(negative()); break;
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
    case 0x49: set(a, a ^ next()); break;
    case 0x4A: a = lsr(a); break;
    case 0x4C: jump(absolute()); break;
    case 0x4D: set(a, a ^ load(absolute())); break;
    case 0x4E: modify(absolute(), [this](uint8_t value) { return lsr(value); }); break;
    case 0x50: branch(!(rest & kV)); break;
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
    case 0x69: add(next()); break;
    case 0x6A: a = ror(a); break;
    case 0x6C: jump_indirect(); break;
    case 0x6D: add(load(absolute())); break;
    case 0x6E: modify(absolute(), [this](uint8_t value) { return ror(value); }); break;
    case 0x70: branch(rest & kV); break;
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
    case 0xA0: set(y, next()); break;
    case 0xA1: set(a, load(indirect_x())); break;
    case 0xA2: set(x, next()); break;
    case 0xA4: set(y, load(zero_page())); break;
    case 0xA5: set(a, load(zero_page())); break;
    case 0xA6: set(x, load(zero_page())); break;
    case 0xA8: set(y, a); break;
    case 0xA9: set(a, next()); break;
    case 0xAA: set(x, a); break;
    case 0xAC: set(y, load(absolute())); break;
    case 0xAD: set(a, load(absolute())); break;
    case 0xAE: set(x, load(absolute())); break;
    case 0xB0: branch(c); break;
    case 0xB1: set(a, load(indirect_y<true>())); break;
    case 0xB4: set(y, load(zero_page_x())); break;
    case 0xB5: set(a, load(zero_page_x())); break;
    case 0xB6: set(x, load(zero_page_y())); break;
    case 0xB8: rest &= static_cast<uint8_t>(~kV); break;
    case 0xB9: set(a, load(absolute_y<true>())); break;
    case 0xBA: set(x, s); break;
    case 0xBC: set(y, load(absolute_x<true>())); break;
    case 0xBD: set(a, load(absolute_x<true>())); break;
    case 0xBE: set(x, load(absolute_y<true>())); break;
    case 0xC0: compare(y, next()); break;
    case 0xC1: compare(a, load(indirect_x())); break;
    case 0xC4: compare(y, load(zero_page())); break;
    case 0xC5: compare(a, load(zero_page())); break;
    case 0xC6: modify(zero_page(), [this](uint8_t value) { return dec(value); }); break;
    case 0xC8: set(y, y + 1); break;
    case 0xC9: compare(a, next()); break;
    case 0xCA: set(x, x - 1); break;
    case 0xCC: compare(y, load(absolute())); break;
    case 0xCD: compare(a, load(absolute())); break;
    case 0xCE: modify(absolute(), [this](uint8_t value) { return dec(value); }); break;
    case 0xD0: branch(!zero()); break;
    case 0xD1: compare(a, load(indirect_y<true>())); break;
    case 0xD5: compare(a, load(zero_page_x())); break;
    case 0xD6: modify(zero_page_x(), [this](uint8_t value) { return dec(value); }); break;
    case 0xD8: rest &= ~kD; break;
    case 0xD9: compare(a, load(absolute_y<true>())); break;
    case 0xDD: compare(a, load(absolute_x<true>())); break;
    case 0xDE: modify(absolute_x<false>(), [this](uint8_t value) { return dec(value); }); break;
    case 0xE0: compare(x, next()); break;
    case 0xE1: add(load(indirect_x()) ^ 0xFF); break;
    case 0xE4: compare(x, load(zero_page())); break;
    case 0xE5: add(load(zero_page()) ^ 0xFF); break;
    case 0xE6: modify(zero_page(), [this](uint8_t value) { return inc(value); }); break;
    case 0xE8: set(x, x + 1); break;
    case 0xE9: add(next() ^ 0xFF); break;
    case 0xEA:  break;
    case 0xEC: compare(x, load(absolute())); break;
    case 0xED: add(load(absolute()) ^ 0xFF); break;
    case 0xEE: modify(absolute(), [this](uint8_t value) { return inc(value); }); break;
    case 0xF0: branch(zero()); break;
    case 0xF1: add(load(indirect_y<true>()) ^ 0xFF); break;
    case 0xF5: add(load(zero_page_x()) ^ 0xFF); break;
    case 0xF6: modify(zero_page_x(), [this](uint8_t value) { return inc(value); }); break;
    case 0xF8: rest |= kD; break;
    case 0xF9: add(load(absolute_y<true>()) ^ 0xFF); break;
    case 0xFD: add(load(absolute_x<true>()) ^ 0xFF); break;
    case 0xFE: modify(absolute_x<false>(), [this](uint8_t value) { return inc(value); }); break;
    // clang-format on
    default:
      --pc;
      save();
      throw_illegal(pc, opcode);
  }
}

namespace {

template <bool kTranslated>
void run_loop(Machine& m, const Cartridge& cart, const NativeCode* native, int32_t deadline) {
  static constexpr NativeIo kIo = {bus::read_io, bus::write_io, bus::skip_poll};
  Core core(m, cart);
  while (core.now < deadline) {
    core.stop = deadline;
    int32_t limit = kTranslated ? deadline - native->slack : 0;
    if (m.nmi == NmiState::kDelayed) {
      m.nmi = NmiState::kPending;
      core.stop = core.now + 1;  // exactly one instruction, interpreted
      limit = core.now;
    } else if (m.nmi == NmiState::kPending) {
      m.nmi = NmiState::kNone;
      core.now += 7 * kCycle;
      core.interrupt(kNmiVector, core.flags());
    }
    while (core.now < core.stop) {
      if (kTranslated && core.now < limit && core.pc >= 0x8000 && native->entry[core.pc - 0x8000]) {
        core.save();
        native->run(&m, &cart, &kIo, limit);
        core.reload();
        if (m.nmi != NmiState::kNone) break;
      } else {
        core.execute();
      }
    }
  }
  core.save();
}

}  // namespace

void run(Machine& m, const Cartridge& cart, const NativeCode* native, int32_t deadline) {
  if (native) {
    run_loop<true>(m, cart, native, deadline);
  } else {
    run_loop<false>(m, cart, native, deadline);
  }
}

}  // namespace cpu

IllegalOpcode::IllegalOpcode(uint16_t at, uint8_t code)
    : std::runtime_error(cpu::describe(at, code)), address(at), opcode(code) {}

}  // namespace wz
