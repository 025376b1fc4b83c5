#include "nes/render_sprites.hpp"

#include <algorithm>
#include <cstring>

#include "nes/render.hpp"
#include "nes/render_band.hpp"

namespace wz::render {
namespace {

constexpr int kSpritesPerLine = 8;
/// Marks a pixel, while sprites are drawn, that an opaque sprite pixel has decided already.
constexpr uint64_t kDecided = 0x80 * kEveryByte;

/// 0xFF in every byte of `pixels` whose low two bits are not both zero.
uint64_t opaque(uint64_t pixels) {
  const uint64_t bits = (pixels | pixels >> 1) & kEveryByte;
  return (bits << 8) - bits;
}

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

Sprites::Sprites(const Machine& m, const Cartridge& cart) : cart_(cart) {
  for (int i = 0; i < 256; i += 4) {
    const uint8_t* entry = m.oam + i;
    if (entry[0] >= kHeight - 1) continue;
    sprites_[count_++] = {entry[0] + 1, entry[3], entry[1], entry[2]};
  }
}

uint64_t Sprites::pixels(const Sprite& sprite, unsigned row, unsigned flags) const {
  const unsigned height = flags & kTallSprites ? 16 : 8;
  if (sprite.attributes & 0x80) row = height - 1 - row;
  const unsigned tile = flags & kTallSprites
                            ? ((sprite.tile & 1) << 8 | (sprite.tile & 0xFE)) + (row >> 3)
                            : (flags & kSpriteTable ? 256 : 0) + sprite.tile;
  const auto& tiles = sprite.attributes & 0x40 ? cart_.tiles_flipped : cart_.tiles;
  return tiles[tile * 8 + (row & 7)];
}

void Sprites::draw(const uint8_t* flags, int begin, int end, const Canvas& canvas) const {
  uint8_t any = 0;
  for (int line = begin; line < end; ++line) any |= flags[line];
  if (!(any & kSpritesFound) || !(any & kShowSprites)) return;
  const int reach = any & kTallSprites ? 16 : 8;
  const auto at = [&](int line, int x) {
    const int row = line - canvas.first;
    return canvas.rows + row * Picture::kStride + canvas.shift[row] + x;
  };

  uint8_t found[kHeight] = {};
  for (int i = 0; i < count_; ++i) {
    const Sprite& sprite = sprites_[i];
    const uint64_t palette = (0x10 | (sprite.attributes & 3u) << 2) * kEveryByte;
    const uint64_t behind = sprite.attributes & 0x20 ? ~uint64_t{0} : 0;
    const uint64_t inside = sprite.left >= 8   ? ~uint64_t{0}
                            : sprite.left == 0 ? 0
                                               : ~uint64_t{0} << (64 - 8 * sprite.left);
    const int bottom = std::min(sprite.top + reach, end);
    for (int line = std::max(sprite.top, begin); line < bottom; ++line) {
      const uint8_t flag = flags[line];
      const int row = line - sprite.top;
      if (!(flag & kSpritesFound) || (row >= 8 && !(flag & kTallSprites))) continue;
      if (found[line]++ >= kSpritesPerLine || !(flag & kShowSprites)) continue;
      uint64_t bytes = pixels(sprite, static_cast<unsigned>(row), flag);
      if (!(flag & kLeftSprites)) bytes &= inside;
      paint(at(line, sprite.left), bytes, palette, behind);
    }
  }
  for (int i = 0; i < count_; ++i) {
    const int bottom = std::min(sprites_[i].top + reach, end);
    for (int line = std::max(sprites_[i].top, begin); line < bottom; ++line) {
      forget_marks(at(line, sprites_[i].left));
    }
  }
}

}  // namespace wz::render
