#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

/// The picture drawn dot by dot from the raw memories: slow, and as plain as possible. The truth
/// that the fast renderer is held to.
namespace wz::slow {

class Renderer {
 public:
  Renderer(const Machine& m, const Cartridge& cart) : m_(m), cart_(cart), s_(m.picture) {}

  /// Palette-RAM indices with every transparent pixel as 0.
  void draw(uint8_t out[240][256]) {
    for (line_ = 0; line_ < 240; ++line_) {
      for (auto& pixel : pixels_) pixel = 0;
      column_ = 0;
      for (auto& pixel : ahead_) pixel = 0;
      // The row changes before a write that late, else after the last tile.
      const bool late_write = has_write(240, 243);
      for (int dot = -16; dot < 325; ++dot) {
        if (dot == -16) tile_step(0);
        if ((dot + 20) % 8 == 0 && dot <= 244) tile_step((dot + 20) / 8);
        if (dot == (late_write ? 240 : 244) && on()) next_row();
        if (dot == 256) {
          sprites(out[line_]);
          found_on_ = on();
          found_ctrl_ = s_.ctrl;
        }
        if (dot == 262 && on()) s_.v = static_cast<uint16_t>((s_.v & 0x7BE0) | (s_.t & 0x041F));
        for (int i = 0; i < m_.raster_count; ++i) {
          if (when(i) == dot) write(m_.raster[i].reg, m_.raster[i].value);
        }
      }
    }
  }

 private:
  bool on() const { return (s_.mask & 0x18) != 0; }

  int when(int i) const {
    // run_frame has flipped the parity already: an odd frame's lines start one dot early.
    const int first = timing::kFirstLine - (m_.odd_frame ? 0 : 1);
    return m_.raster[i].dot - (first + line_ * timing::kDotsPerLine);
  }

  bool has_write(int from, int to) const {
    for (int i = 0; i < m_.raster_count; ++i) {
      if (when(i) >= from && when(i) <= to) return true;
    }
    return false;
  }

  uint8_t vram(int address) const {
    const int page = address >> 10 & 3;
    const int bank = cart_.vertical_mirroring ? page & 1 : page >> 1;
    return m_.vram[bank * 1024 + (address & 1023)];
  }

  int chr(int table, int tile, int row, int x) const {
    const int at = table * 4096 + tile * 16 + row;
    return (cart_.chr[static_cast<size_t>(at)] >> (7 - x) & 1) |
           (cart_.chr[static_cast<size_t>(at + 8)] >> (7 - x) & 1) << 1;
  }

  void next_row() {
    int fine = s_.v >> 12 & 7, row = s_.v >> 5 & 31, table = s_.v >> 10 & 3;
    if (++fine == 8) {
      fine = 0;
      if (row == 29) {
        row = 0;
        table ^= 2;
      } else {
        row = (row + 1) & 31;
      }
    }
    s_.v = static_cast<uint16_t>(fine << 12 | table << 10 | row << 5 | (s_.v & 31));
  }

  void tile_step(int step) {
    if (!on()) {
      column_ += 8;
      return;
    }
    if (step >= 2) {
      for (int i = 0; i < 8; ++i) {
        const int x = column_ + i;
        if (x > 255 || !(s_.mask & 0x08) || (step == 2 && !(s_.mask & 0x02))) continue;
        pixels_[x] = ahead_[i + s_.fine_x];
      }
      column_ += 8;
    }
    const int x = s_.v & 31, y = s_.v >> 5 & 31, table = s_.v >> 10 & 3;
    const int tile = vram(table << 10 | y << 5 | x);
    const int attribute = vram(table << 10 | 0x3C0 | (y / 4) << 3 | x / 4);
    const int palette = attribute >> ((y & 2) * 2 + (x & 2)) & 3;
    for (int i = 0; i < 8; ++i) {
      const int color = chr(s_.ctrl >> 4 & 1, tile, s_.v >> 12 & 7, i);
      ahead_[i] = ahead_[i + 8];
      ahead_[i + 8] = static_cast<uint8_t>(color ? palette * 4 + color : 0);
    }
    s_.v = static_cast<uint16_t>(x == 31 ? (s_.v - 31) ^ 0x400 : s_.v + 1);
  }

  void sprites(uint8_t* out) {
    for (int x = 0; x < 256; ++x) out[x] = pixels_[x];
    if (line_ == 0 || !found_on_ || !(s_.mask & 0x10)) return;
    const int height = found_ctrl_ & 0x20 ? 16 : 8;
    for (int x = s_.mask & 0x04 ? 0 : 8; x < 256; ++x) {
      int found = 0;
      for (int i = 0; i < 64 && found < 8; ++i) {
        const uint8_t* sprite = m_.oam + 4 * i;
        int row = line_ - 1 - sprite[0];
        if (row < 0 || row >= height) continue;
        ++found;
        int column = x - sprite[3];
        if (column < 0 || column > 7) continue;
        if (sprite[2] & 0x80) row = height - 1 - row;
        if (sprite[2] & 0x40) column = 7 - column;
        int table = found_ctrl_ >> 3 & 1, tile = sprite[1];
        if (height == 16) {
          table = tile & 1;
          tile = (tile & 0xFE) + row / 8;
          row %= 8;
        }
        const int color = chr(table, tile, row, column);
        if (color == 0) continue;
        const bool behind = (sprite[2] & 0x20) != 0;
        if (!behind || pixels_[x] == 0) {
          out[x] = static_cast<uint8_t>(16 + (sprite[2] & 3) * 4 + color);
        }
        break;
      }
    }
  }

  void write(int reg, int value) {
    const int t = s_.t;
    if (reg == 0) {
      s_.ctrl = static_cast<uint8_t>(value);
      s_.t = static_cast<uint16_t>((t & ~0x0C00) | (value & 3) << 10);
    } else if (reg == 1) {
      s_.mask = static_cast<uint8_t>(value);
    } else if (reg == 5 && s_.latch == 0) {
      s_.t = static_cast<uint16_t>((t & ~0x001F) | value >> 3);
      s_.fine_x = value & 7;
    } else if (reg == 5) {
      s_.t = static_cast<uint16_t>((t & ~0x73E0) | (value & 7) << 12 | (value >> 3) << 5);
    } else if (s_.latch == 0) {
      s_.t = static_cast<uint16_t>((t & 0x00FF) | (value & 0x3F) << 8);
    } else {
      s_.v = s_.t = static_cast<uint16_t>((t & 0x7F00) | value);
    }
    if (reg >= 5) s_.latch ^= 1;
  }

  const Machine& m_;
  const Cartridge& cart_;
  Scroll s_;
  int line_ = 0, column_ = 0;
  uint8_t pixels_[256] = {}, ahead_[16] = {};
  bool found_on_ = false;
  uint8_t found_ctrl_ = 0;
};

}  // namespace wz::slow
