#include <utility>

#include "nespy/ppu.hpp"

namespace wz::nespy {
namespace {

enum Register { kCtrl, kMask, kStatus, kOamAddress, kOamData, kScroll, kAddress, kData };

/// Where a name-table address lies in VRAM; everything from $2C00 on is the fourth table.
size_t vram_index(const Cartridge& cart, uint16_t address) {
  const int table = address < 0x2C00 ? (address >> 10) & 3 : 3;
  const int bank = cart.vertical_mirroring ? table & 1 : table >> 1;
  return static_cast<size_t>(bank * 0x400 + (address & 0x3FF));
}

void advance_address(Ppu& p) {
  p.v = static_cast<uint16_t>(p.v + ((p.ctrl & ctrl::kIncrement32) != 0 ? 32 : 1));
}

uint8_t read_data(Machine& m, const Cartridge& cart) {
  Ppu& p = m.ppu;
  const uint8_t value = read_vram(m, cart, p.v);
  advance_address(p);
  return p.v < 0x3F00 ? std::exchange(p.read_buffer, value) : value;
}

void write_scroll(Ppu& p, uint8_t value) {
  if (p.second_write == 0) {
    p.t = static_cast<uint16_t>((p.t & ~0x001F) | value >> 3);
    p.fine_x = value & 7;
  } else {
    p.t = static_cast<uint16_t>((p.t & ~0x73E0) | (value & 7) << 12 | (value & 0xF8) << 2);
  }
  p.second_write ^= 1;
}

void write_address(Ppu& p, uint8_t value) {
  if (p.second_write == 0) {
    p.t = static_cast<uint16_t>((p.t & 0x00FF) | (value & 0x3F) << 8);
  } else {
    p.t = static_cast<uint16_t>((p.t & 0xFF00) | value);
    p.v = p.t;
  }
  p.second_write ^= 1;
}

}  // namespace

uint8_t read_vram(const Machine& m, const Cartridge& cart, uint16_t address) {
  if (address < 0x2000) return cart.chr[address];
  if (address < 0x3EFF) return m.vram[vram_index(cart, address)];
  if (address < 0x3FFF) return m.palette[address & 31];
  return 0;
}

void write_vram(Machine& m, const Cartridge& cart, uint16_t address, uint8_t value) {
  if (address < 0x2000 || address >= 0x3FFF) return;
  if (address < 0x3EFF) {
    m.vram[vram_index(cart, address)] = value;
  } else {
    m.palette[address == 0x3F10 ? 0 : address & 31] = value;
  }
}

uint8_t read_ppu(Machine& m, const Cartridge& cart, int reg) {
  Ppu& p = m.ppu;
  switch (reg) {
    case kStatus: {
      const int status = p.vblank << 7 | p.sprite_zero_hit << 6;
      p.vblank = 0;
      p.second_write = 0;
      return static_cast<uint8_t>(status);
    }
    case kOamData:
      return m.oam[p.oam_address];
    case kData:
      return read_data(m, cart);
    default:
      return 0;
  }
}

void write_ppu(Machine& m, const Cartridge& cart, int reg, uint8_t value) {
  Ppu& p = m.ppu;
  switch (reg) {
    case kCtrl:
      p.ctrl = value;
      p.t = static_cast<uint16_t>((p.t & ~0x0C00) | (value & 3) << 10);
      break;
    case kMask:
      p.mask = value;
      break;
    case kOamAddress:
      p.oam_address = value;
      break;
    case kOamData:
      m.oam[p.oam_address++] = value;
      break;
    case kScroll:
      write_scroll(p, value);
      break;
    case kAddress:
      write_address(p, value);
      break;
    case kData:
      write_vram(m, cart, p.v, value);
      advance_address(p);
      break;
    default:
      break;
  }
}

}  // namespace wz::nespy
