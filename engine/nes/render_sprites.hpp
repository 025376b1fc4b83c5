#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"
#include "nes/render.hpp"

namespace wz::render {

/// What the sprites of one line need to know.
enum LineFlags : uint8_t {
  kShowSprites = 1,  ///< switched on when the line was drawn
  kSpritesFound = 4, ///< the PPU was on while it looked for them, one line earlier
  kLeftSprites = 2,  ///< also in the leftmost eight pixels
  kSpriteTable = 0x08,
  kTallSprites = 0x20,
};

/// Draws sprites over a picture that has its background. `flags` has one entry for each line.
void draw_sprites(const Machine& m, const Cartridge& cart, const uint8_t flags[kHeight],
                  Picture& out);

}  // namespace wz::render
