#include <algorithm>
#include <cstring>
#include <iterator>

#include "nespy/cpu.hpp"

namespace wz::nespy {
namespace {

constexpr uint16_t kResetVector = 0xFFFC;
/// Flags after reset, in nes-py's bit order: decimal and interrupt-disable set.
constexpr uint8_t kResetFlags = 0x34;
/// More than the longest wait: sprite DMA, interrupts and an instruction together.
constexpr int32_t kMaxWait = 1024;

bool is_flag(uint8_t value) { return value <= 1; }

bool is_valid(const Ppu& p) {
  const bool place = p.line >= kPreRenderLine && p.line <= kLastLine && p.dot <= kLastDot &&
                     p.dot >= (p.line == kPreRenderLine ? 0 : 1);
  const bool flags = is_flag(p.second_write) && is_flag(p.vblank) && is_flag(p.sprite_zero_hit) &&
                     is_flag(p.odd_frame);
  return place && flags && p.fine_x < 8 && p.sprite_count <= 8 &&
         std::all_of(p.sprites, p.sprites + p.sprite_count, [](uint8_t i) { return i < 64; });
}

}  // namespace

Machine power_on(const Cartridge& cart) {
  Machine m;
  std::memset(&m, 0, sizeof m);
  std::memset(m.screen, kBlack, sizeof m.screen);
  m.ppu.mask = mask::kLeftBackground | mask::kLeftSprites;
  for (Controller& c : m.controllers) c.strobe = 1;
  reset(m, cart);
  return m;
}

void reset(Machine& m, const Cartridge& cart) {
  Cpu& cpu = m.cpu;
  cpu = {};
  cpu.pc = cart.read16(kResetVector);
  cpu.s = 0xFD;
  cpu.p = kResetFlags;

  Ppu& p = m.ppu;
  p.line = kPreRenderLine;
  p.dot = 0;
  p.v = p.t = 0;
  p.fine_x = p.second_write = p.ctrl = p.vblank = p.odd_frame = p.oam_address = 0;
  p.mask |= mask::kBoth;
  p.sprite_count = 0;
}

void step(Machine& m, const Cartridge& cart, uint8_t buttons, uint8_t buttons2) {
  m.controllers[0].buttons = buttons;
  m.controllers[1].buttons = buttons2;
  Bus bus(m, cart);
  while (true) {
    const int32_t start = bus.cycle + std::max(m.cpu.wait, 1) - 1;
    if (start >= kCyclesPerStep) break;
    if (bus.vblank_near(start) && bus.sync(start)) {
      interrupt(bus);
      continue;
    }
    bus.cycle = start;
    execute(bus);
    bus.cycle = start + 1;
  }
  m.cpu.wait -= kCyclesPerStep - bus.cycle;
  if (bus.sync(kCyclesPerStep - 1)) interrupt(bus);
  m.cpu.odd_cycle ^= kCyclesPerStep & 1;
}

void restore(Machine& m, const Machine& backup) {
  const Controller first = m.controllers[0], second = m.controllers[1];
  m = backup;
  m.controllers[0] = first;
  m.controllers[1] = second;
}

bool is_valid(const Machine& m) {
  const bool controllers = std::all_of(std::begin(m.controllers), std::end(m.controllers),
                                       [](const Controller& c) { return is_flag(c.strobe); });
  const bool colors = std::all_of(std::begin(m.screen), std::end(m.screen),
                                  [](uint8_t color) { return color < 64; });
  return is_valid(m.ppu) && controllers && colors && is_flag(m.cpu.odd_cycle) && m.cpu.wait >= 0 &&
         m.cpu.wait <= kMaxWait;
}

}  // namespace wz::nespy
