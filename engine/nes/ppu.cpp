#include "nes/ppu.hpp"

#include <cstring>

namespace wz::ppu {
namespace {

/// Palette entries whose low two bits are zero exist once for background and sprites.
unsigned palette_index(unsigned address) {
  return (address & 0x13) == 0x10 ? address & 0x0F : address & 0x1F;
}

void advance_address(Machine& m) {
  m.scroll.v = static_cast<uint16_t>((m.scroll.v + (m.scroll.ctrl & 0x04 ? 32 : 1)) & 0x7FFF);
}

uint8_t read_data(Machine& m, const Cartridge& cart) {
  const unsigned address = m.scroll.v & 0x3FFF;
  uint8_t result = m.read_buffer;
  if (address >= 0x3F00) {
    result = m.palette[palette_index(address)];
    m.read_buffer = m.vram[nametable_index(cart, address)];
  } else if (address >= 0x2000) {
    m.read_buffer = m.vram[nametable_index(cart, address)];
  } else {
    m.read_buffer = cart.chr[address];
  }
  advance_address(m);
  return result;
}

/// Graphics are ROM, so a write below $2000 changes nothing. Both mirrorings are covered because
/// the loader only accepts cartridges with two-screen wiring.
void write_data(Machine& m, const Cartridge& cart, uint8_t value) {
  const unsigned address = m.scroll.v & 0x3FFF;
  if (address >= 0x3F00) {
    m.palette[palette_index(address)] = value & 0x3F;
  } else if (address >= 0x2000) {
    m.vram[nametable_index(cart, address)] = value;
  }
  advance_address(m);
}

bool picture_has_rendering(const Machine& m) {
  if (m.picture.mask & kRendering) return true;
  for (unsigned i = 0; i < m.raster_count; ++i) {
    if (m.raster[i].reg == 1 && (m.raster[i].value & kRendering)) return true;
  }
  return false;
}

void record(Machine& m, unsigned reg, uint8_t value, int32_t start) {
  if (m.phase != PpuPhase::kDrawing) return;
  m.hit_dot = kHitUnknown;
  // While nothing has been drawn yet the scroll registers are invisible: start the picture from
  // where they are when rendering is switched on.
  if (reg == 1 && (value & kRendering) && !picture_has_rendering(m)) {
    m.picture = m.scroll;
    m.raster_count = 0;
  }
  if (m.raster_count < kMaxRasterWrites) {
    m.raster[m.raster_count++] = {start, static_cast<uint8_t>(reg), value};
  }
}

uint8_t read_status(Machine& m, const Cartridge& cart, int32_t end) {
  if (m.phase == PpuPhase::kDrawing && !(m.status & kHitFlag)) {
    if (m.hit_dot == kHitUnknown) m.hit_dot = find_hit(m, cart);
    if (end >= m.hit_dot) m.status |= kHitFlag;
  }
  const uint8_t result = static_cast<uint8_t>(m.status | (m.io_latch & 0x1F));
  m.status &= static_cast<uint8_t>(~kVblankFlag);
  m.scroll.latch = 0;
  m.io_latch = result;
  return result;
}

}  // namespace

void sync(Machine& m, int32_t start) {
  if (m.dead_frames) return;
  if (m.phase == PpuPhase::kPicture && start >= timing::kVblankSet) {
    m.status |= kVblankFlag;
    m.oam_address = 0;
    m.phase = PpuPhase::kVblank;
  }
  if (m.phase == PpuPhase::kVblank && start >= timing::kFlagsCleared) {
    m.status &= 0x1F;
    m.phase = PpuPhase::kPreRender;
  }
  if (m.phase == PpuPhase::kPreRender && start >= timing::kScrollReload) {
    if (m.scroll.mask & kRendering) m.scroll.v = m.scroll.t;
    m.picture = m.scroll;
    m.raster_count = 0;
    m.hit_dot = kHitUnknown;
    m.phase = PpuPhase::kDrawing;
  }
}

uint8_t read(Machine& m, const Cartridge& cart, uint16_t address, int32_t start, int32_t end) {
  sync(m, start);
  switch (address & 7) {
    case 2:
      return read_status(m, cart, end);
    case 7:
      return m.io_latch = read_data(m, cart);
    default:
      return m.io_latch;
  }
}

void write(Machine& m, const Cartridge& cart, uint16_t address, uint8_t value, int32_t start) {
  sync(m, start);
  const unsigned reg = address & 7;
  m.io_latch = value;
  switch (reg) {
    case 0:
      // Switching the NMI on while the vertical blank is flagged raises it after one more
      // instruction. This is how the game leaves a lag frame.
      if (!(m.scroll.ctrl & 0x80) && (value & 0x80) && (m.status & kVblankFlag)) {
        m.nmi = NmiState::kDelayed;
      }
      [[fallthrough]];
    case 1:
    case 5:
    case 6:
      record(m, reg, value, start);
      apply(m.scroll, reg, value);
      break;
    case 3:
      m.oam_address = value;
      break;
    case 4:
      m.oam[m.oam_address++] = value;
      m.hit_dot = kHitUnknown;
      break;
    case 7:
      write_data(m, cart, value);
      break;
    default:
      break;
  }
}

void write_oam(Machine& m, const uint8_t* page, int32_t start) {
  sync(m, start);
  const size_t first = m.oam_address;
  std::memcpy(m.oam + first, page, 256 - first);
  std::memcpy(m.oam, page + (256 - first), first);
  m.io_latch = page[255];
  m.hit_dot = kHitUnknown;
}

int32_t find_hit(const Machine& m, const Cartridge& cart) {
  const unsigned height = m.scroll.ctrl & 0x20 ? 16 : 8;
  const unsigned top = m.oam[0] + 1u;
  const unsigned left = m.oam[3];
  Scroll s = m.picture;
  unsigned next_write = 0;
  for (unsigned line = 0; line < top + height && line < 240; ++line) {
    const int32_t start = line_start(m, static_cast<int>(line));
    while (next_write < m.raster_count && m.raster[next_write].dot < start) {
      apply(s, m.raster[next_write].reg, m.raster[next_write].value);
      ++next_write;
    }
    if (line >= top && (s.mask & kRendering) == kRendering) {
      unsigned row = line - top;
      if (m.oam[2] & 0x80) row = height - 1 - row;
      const unsigned tile = height == 16 ? ((m.oam[1] & 1u) << 8 | (m.oam[1] & 0xFEu)) + (row >> 3)
                                         : (s.ctrl & 0x08 ? 256u : 0u) + m.oam[1];
      const auto& table = m.oam[2] & 0x40 ? cart.tiles_flipped : cart.tiles;
      const uint64_t sprite = table[tile * 8 + (row & 7)];
      for (unsigned i = 0; i < 8; ++i) {
        const unsigned x = left + i;
        if (x >= 255 || !(sprite >> (8 * i) & 3)) continue;
        if (x < 8 && (s.mask & 0x06) != 0x06) continue;
        const unsigned fine = x + s.fine_x;
        unsigned column = (s.v & 0x1Fu) + (fine >> 3);
        unsigned v = s.v & ~0x1Fu;
        if (column >= 32) {
          column -= 32;
          v ^= 0x400;
        }
        const unsigned name = m.vram[nametable_index(cart, (v & 0x0FFF) | column)];
        const unsigned bg = (s.ctrl & 0x10 ? 256u : 0u) + name;
        const uint64_t pixels = cart.tiles[bg * 8 + (s.v >> 12 & 7)];
        if (pixels >> (8 * (fine & 7)) & 3) return start + static_cast<int32_t>(x) + 1;
      }
    }
    if (s.mask & kRendering) s.v = end_of_line(s.v, s.t);
  }
  return kHitNever;
}

}  // namespace wz::ppu
