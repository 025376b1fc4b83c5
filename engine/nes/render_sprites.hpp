#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

namespace wz::render {

/// Where lines are drawn: rows of `Picture::kStride` bytes.
struct Canvas {
  uint8_t* rows;
  uint8_t* shift;
  int first;  ///< the line that the first row holds
};

/// What the sprites of one line need to know.
enum LineFlags : uint8_t {
  kShowSprites = 1,   ///< switched on when the line was drawn
  kLeftSprites = 2,   ///< also in the leftmost eight pixels
  kSpritesFound = 4,  ///< the PPU was on while it looked for them, one line earlier
  kSpriteTable = 0x08,
  kTallSprites = 0x20,
};

/// The sprites of a picture that are on the screen at all, in order of priority.
class Sprites {
 public:
  Sprites(const Machine& m, const Cartridge& cart);

  /// Draws them over lines that have their background. `flags` has one entry for every line of
  /// the picture.
  void draw(const uint8_t* flags, int begin, int end, const Canvas& canvas) const;

 private:
  struct Sprite {
    int top, left;
    unsigned tile, attributes;
  };

  uint64_t pixels(const Sprite& sprite, unsigned row, unsigned flags) const;

  const Cartridge& cart_;
  Sprite sprites_[64];
  int count_ = 0;
};

}  // namespace wz::render
