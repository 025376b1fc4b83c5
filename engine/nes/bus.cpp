#include "nes/bus.hpp"

#include <algorithm>

#include "nes/ppu.hpp"

namespace wz::bus {
namespace {

constexpr int32_t kDmaDots = 513 * timing::kDotsPerCycle;
constexpr int32_t kPollDots = 9 * timing::kDotsPerCycle;      // LDA abs, AND #, branch taken
constexpr int32_t kPollReadDots = 4 * timing::kDotsPerCycle;  // LDA abs reads with its last cycle

/// Bit 6 is what the open bus leaves behind; the game masks it away.
uint8_t read_controller(Machine& m, unsigned port) {
  if (m.strobe & 1) return static_cast<uint8_t>(0x40 | (m.buttons[port] & 1));
  const uint8_t bit = m.shift[port] & 1;
  m.shift[port] = static_cast<uint8_t>(m.shift[port] >> 1 | 0x80);
  return static_cast<uint8_t>(0x40 | bit);
}

void write_strobe(Machine& m, uint8_t value) {
  if ((m.strobe & 1) && !(value & 1)) {
    m.shift[0] = m.buttons[0];
    m.shift[1] = m.buttons[1];
  }
  m.strobe = value;
}

int32_t dma(Machine& m, const Cartridge& cart, uint8_t page, int32_t start, int32_t end) {
  uint8_t bytes[256];
  for (unsigned i = 0; i < 256; ++i) {
    bytes[i] = read(m, cart, static_cast<uint16_t>(page << 8 | i), start, end);
  }
  ppu::write_oam(m, bytes, start);
  return end + kDmaDots;
}

}  // namespace

uint8_t read_io(Machine* m, const Cartridge* cart, uint16_t address, int32_t start, int32_t end) {
  if (address < 0x4000) return ppu::read(*m, *cart, address, start, end);
  if (address == 0x4016) return read_controller(*m, 0);
  if (address == 0x4017) return read_controller(*m, 1);
  return static_cast<uint8_t>(address >> 8);
}

int32_t write_io(Machine* m, const Cartridge* cart, uint16_t address, uint8_t value, int32_t start,
                 int32_t end) {
  if (address < 0x4000) {
    ppu::write(*m, *cart, address, value, start);
  } else if (address == 0x4014) {
    return dma(*m, *cart, value, start, end);
  } else if (address == 0x4016) {
    write_strobe(*m, value);
  }
  return end;
}

int32_t skip_poll(Machine* m, const Cartridge* cart, uint8_t mask, int32_t now, int32_t limit) {
  if (mask != ppu::kHitFlag || m->dead_frames) return now;
  // Reads that start before `quiet` see the flag as it is; the first one at or after it is real.
  int32_t quiet = limit;
  if (m->phase == PpuPhase::kPicture) {
    quiet = timing::kVblankSet;
  } else if (m->phase != PpuPhase::kDrawing) {
    quiet = m->status & ppu::kHitFlag ? timing::kFlagsCleared : timing::kScrollReload;
  } else if (!(m->status & ppu::kHitFlag)) {
    if (m->hit_dot == kHitUnknown) m->hit_dot = ppu::find_hit(*m, *cart);
    if (m->hit_dot != kHitNever) quiet = m->hit_dot - kPollReadDots;
  }
  // The last iteration before the limit is left to be run, so that the limit can fall inside it.
  quiet = std::min(quiet, limit - kPollDots);
  if (quiet <= now) return now;
  return now + (quiet - now + kPollDots - 1) / kPollDots * kPollDots;
}

}  // namespace wz::bus
