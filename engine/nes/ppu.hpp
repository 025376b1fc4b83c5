#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

/// The PPU as the CPU sees it: registers and flags. It is never ticked: what time has done to it
/// is computed when it is read. Pictures are drawn by render.hpp.
namespace wz::ppu {

inline constexpr uint8_t kVblankFlag = 0x80;
inline constexpr uint8_t kHitFlag = 0x40;
inline constexpr uint8_t kRendering = 0x18;

/// Applies the events due before an instruction that starts at dot `start`.
void sync(Machine& m, int32_t start);

uint8_t read(Machine& m, const Cartridge& cart, uint16_t address, int32_t start, int32_t end);
void write(Machine& m, const Cartridge& cart, uint16_t address, uint8_t value, int32_t start);

/// Copies a page of sprites, as $4014 does.
void write_oam(Machine& m, const uint8_t* page, int32_t start);

/// The dot from which a read of $2002 sees that sprite 0 has hit the background in this frame, or
/// kHitNever.
int32_t find_hit(const Machine& m, const Cartridge& cart);

/// Where a VRAM address ($2000-$2FFF) lives in `Machine::vram`.
inline unsigned nametable_index(const Cartridge& cart, unsigned address) {
  return cart.vertical_mirroring ? (address & 0x7FF) : ((address & 0x3FF) | (address >> 1 & 0x400));
}

/// Loopy v one line further down.
inline uint16_t next_line(uint16_t v) {
  if ((v & 0x7000) != 0x7000) return static_cast<uint16_t>(v + 0x1000);
  v &= 0x0FFF;
  switch (v & 0x03E0) {
    case 0x03A0:
      return static_cast<uint16_t>((v & ~0x03E0) ^ 0x0800);
    case 0x03E0:
      return static_cast<uint16_t>(v & ~0x03E0);
    default:
      return static_cast<uint16_t>(v + 0x20);
  }
}

/// Loopy v after the end of a line: one line down, horizontal position reloaded from t.
inline uint16_t end_of_line(uint16_t v, uint16_t t) {
  return static_cast<uint16_t>((next_line(v) & ~0x041F) | (t & 0x041F));
}

/// Applies a write to $2000, $2001, $2005 or $2006 to the scroll state.
inline void apply(Scroll& s, unsigned reg, uint8_t value) {
  const unsigned t = s.t;
  switch (reg) {
    case 0:
      s.ctrl = value;
      s.t = static_cast<uint16_t>((t & 0xF3FF) | (value & 3u) << 10);
      break;
    case 1:
      s.mask = value;
      break;
    case 5:
      if (!s.latch) {
        s.t = static_cast<uint16_t>((t & 0xFFE0) | value >> 3);
        s.fine_x = value & 7;
      } else {
        s.t = static_cast<uint16_t>((t & 0x8C1F) | (value & 0xF8u) << 2 | (value & 7u) << 12);
      }
      s.latch ^= 1;
      break;
    case 6:
      if (!s.latch) {
        s.t = static_cast<uint16_t>((t & 0x00FF) | (value & 0x3Fu) << 8);
      } else {
        s.t = static_cast<uint16_t>((t & 0xFF00) | value);
        s.v = s.t;
      }
      s.latch ^= 1;
      break;
    default:
      break;
  }
}

}  // namespace wz::ppu
