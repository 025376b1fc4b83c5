#include <algorithm>

#include "nespy/ppu.hpp"

namespace wz::nespy {
namespace {

/// One line as palette addresses; 0 is the backdrop.
struct Line {
  uint8_t color[kScreenWidth];
};

/// The eight pixels of the background tile under `v`, leftmost in the lowest byte.
uint64_t background_tile(const Machine& m, const Cartridge& cart) {
  const Ppu& p = m.ppu;
  const int v = p.v;
  const uint8_t tile = read_vram(m, cart, static_cast<uint16_t>(0x2000 | (v & 0x0FFF)));
  const uint8_t attribute = read_vram(
      m, cart, static_cast<uint16_t>(0x23C0 | (v & 0x0C00) | ((v >> 4) & 0x38) | ((v >> 2) & 7)));
  const int palette = (attribute >> (((v >> 4) & 4) | (v & 2))) & 3;
  const int table = (p.ctrl & ctrl::kBackgroundTable) != 0 ? 256 : 0;
  const uint64_t row = cart.tiles[static_cast<size_t>((table + tile) * 8 + ((v >> 12) & 7))];
  const uint64_t opaque = (row | row >> 1) & 0x0101010101010101u;
  return row + opaque * static_cast<uint64_t>(palette << 2);
}

void next_tile(Ppu& p) {
  if ((p.v & 31) == 31) {
    p.v = static_cast<uint16_t>((p.v & ~31) ^ 0x0400);
  } else {
    ++p.v;
  }
}

void draw_background(Machine& m, const Cartridge& cart, Line& line, int first, int end) {
  Ppu& p = m.ppu;
  for (int x = first; x < end;) {
    const int fine = (p.fine_x + x) & 7;
    const int stop = std::min(end, x + 8 - fine);
    uint64_t pixels = background_tile(m, cart) >> (8 * fine);
    for (; x < stop; ++x, pixels >>= 8) line.color[x] = static_cast<uint8_t>(pixels & 0xFF);
    if (((p.fine_x + x) & 7) == 0) next_tile(p);
  }
  if ((p.mask & mask::kLeftBackground) == 0) {
    for (int x = first; x < std::min(end, 8); ++x) line.color[x] = 0;
  }
}

/// Where the low bit plane of this sprite's row lies. Sprites found for a line that is not the
/// next one give rows below zero, which reach into the tile before.
uint16_t sprite_row_address(const Ppu& p, const uint8_t* sprite) {
  const bool tall = (p.ctrl & ctrl::kTallSprites) != 0;
  const int height = tall ? 16 : 8;
  const int tile = sprite[1];
  int row = (p.line - static_cast<uint8_t>(sprite[0] + 1)) % height;
  if ((sprite[2] & 0x80) != 0) row ^= height - 1;
  if (tall) {
    const int offset = (row & 7) | (row & 8) << 1;
    return static_cast<uint16_t>((tile >> 1) * 32 + offset + ((tile & 1) << 12));
  }
  return static_cast<uint16_t>(tile * 16 + row + ((p.ctrl & ctrl::kSpriteTable) != 0 ? 0x1000 : 0));
}

void draw_sprites(Machine& m, const Cartridge& cart, Line& line, int first, int end) {
  Ppu& p = m.ppu;
  if ((p.mask & mask::kLeftSprites) == 0) first = std::max(first, 8);
  bool taken[kScreenWidth] = {};
  for (int n = 0; n < p.sprite_count; ++n) {
    const uint8_t* sprite = m.oam + 4 * p.sprites[n];
    const int left = sprite[3];
    const int from = std::max(first, left), to = std::min(end, left + 8);
    if (from >= to) continue;
    const uint16_t address = sprite_row_address(p, sprite);
    const int low = read_vram(m, cart, address);
    const int high = read_vram(m, cart, static_cast<uint16_t>(address + 8));
    const int flip = (sprite[2] & 0x40) != 0 ? 0 : 7;
    const int palette = 0x10 | (sprite[2] & 3) << 2;
    const bool in_front = (sprite[2] & 0x20) == 0;
    for (int x = from; x < to; ++x) {
      const int bit = (x - left) ^ flip;
      const int color = ((low >> bit) & 1) | ((high >> bit) & 1) << 1;
      if (color == 0 || taken[x]) continue;  // NOLINT(clang-analyzer-security.ArrayBound): x < end
      taken[x] = true;
      const bool over_background = line.color[x] != 0;
      if (over_background && p.sprites[n] == 0) p.sprite_zero_hit = 1;
      if (in_front || !over_background) line.color[x] = static_cast<uint8_t>(palette | color);
    }
  }
}

}  // namespace

void draw_pixels(Machine& m, const Cartridge& cart, int first, int end) {
  Line line;
  std::fill(line.color + first, line.color + end, uint8_t{0});
  if ((m.ppu.mask & mask::kBackground) != 0) draw_background(m, cart, line, first, end);
  if ((m.ppu.mask & mask::kSprites) != 0) draw_sprites(m, cart, line, first, end);
  uint8_t* screen = m.screen + m.ppu.line * kScreenWidth;
  for (int x = first; x < end; ++x) screen[x] = m.palette[line.color[x]] & 0x3F;
}

}  // namespace wz::nespy
