#include "nes/render_sprites.hpp"

#include <cstring>

#include "nes/render_band.hpp"

namespace wz::render {
namespace {

constexpr unsigned kSprites = 64;
constexpr unsigned kSpritesPerLine = 8;
/// Marks a pixel, while sprites are drawn, that an opaque sprite pixel has decided already.
constexpr uint64_t kDecided = 0x80 * kEveryByte;

/// 0xFF in every byte of `pixels` whose low two bits are not both zero.
uint64_t opaque(uint64_t pixels) {
  const uint64_t bits = (pixels | pixels >> 1) & kEveryByte;
  return (bits << 8) - bits;
}

struct Sprite {
  unsigned top, left;
  unsigned tile;
  uint8_t attributes;

  explicit Sprite(const uint8_t* entry)
      : top(entry[0] + 1u), left(entry[3]), tile(entry[1]), attributes(entry[2]) {}

  uint64_t pixels(const Cartridge& cart, unsigned row, uint8_t flags) const {
    const unsigned height = flags & kTallSprites ? 16 : 8;
    if (attributes & 0x80) row = height - 1 - row;
    const unsigned index = flags & kTallSprites
                               ? ((tile & 1) << 8 | (tile & 0xFE)) + (row >> 3)
                               : (flags & kSpriteTable ? 256 : 0) + tile;
    const auto& tiles = attributes & 0x40 ? cart.tiles_flipped : cart.tiles;
    return tiles[index * 8 + (row & 7)];
  }
};

/// One row of a sprite over what is there. The first opaque sprite pixel decides, even where it
/// hides behind the background.
void paint(uint8_t* at, uint64_t pixels, uint64_t palette, uint64_t behind) {
  uint64_t there;
  std::memcpy(&there, at, 8);
  const uint64_t decided = (there & kDecided) >> 7;
  const uint64_t mine = opaque(pixels) & ~((decided << 8) - decided);
  const uint64_t shown = mine & ~(opaque(there) & behind);
  there = (there & ~shown) | ((pixels | palette) & shown) | (mine & kDecided);
  std::memcpy(at, &there, 8);
}

void forget_marks(uint8_t* at) {
  uint64_t there;
  std::memcpy(&there, at, 8);
  there &= ~kDecided;
  std::memcpy(at, &there, 8);
}

}  // namespace

void draw_sprites(const Machine& m, const Cartridge& cart, const uint8_t flags[kHeight],
                  Picture& out) {
  constexpr uint8_t kVisible = kSpritesFound | kShowSprites;
  uint8_t any = 0;
  for (int line = 0; line < kHeight; ++line) any |= flags[line];
  if ((any & kVisible) != kVisible) return;
  const unsigned reach = any & kTallSprites ? 16 : 8;
  const auto bottom = [&](unsigned top) {
    return top + reach < kHeight ? top + reach : unsigned{kHeight};
  };

  uint8_t found[kHeight] = {};
  for (unsigned i = 0; i < kSprites; ++i) {
    const Sprite sprite(m.oam + 4 * i);
    const unsigned end = bottom(sprite.top);
    const uint64_t palette = (0x10 | (sprite.attributes & 3u) << 2) * kEveryByte;
    const uint64_t behind = sprite.attributes & 0x20 ? ~uint64_t{0} : 0;
    const uint64_t inside = sprite.left >= 8   ? ~uint64_t{0}
                            : sprite.left == 0 ? 0
                                               : ~uint64_t{0} << (64 - 8 * sprite.left);
    for (unsigned line = sprite.top; line < end; ++line) {
      const uint8_t flag = flags[line];
      const unsigned row = line - sprite.top;
      if (!(flag & kSpritesFound) || (row >= 8 && !(flag & kTallSprites))) continue;
      if (found[line]++ >= kSpritesPerLine || !(flag & kShowSprites)) continue;
      uint64_t pixels = sprite.pixels(cart, row, flag);
      if (!(flag & kLeftSprites)) pixels &= inside;
      paint(out.rows[line] + Picture::kMargin + sprite.left, pixels, palette, behind);
    }
  }
  for (unsigned i = 0; i < kSprites; ++i) {
    const Sprite sprite(m.oam + 4 * i);
    for (unsigned line = sprite.top; line < bottom(sprite.top); ++line) {
      forget_marks(out.rows[line] + Picture::kMargin + sprite.left);
    }
  }
}

}  // namespace wz::render
