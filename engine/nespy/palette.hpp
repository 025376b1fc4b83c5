#pragma once

#include <cstdint>

#include "nes/palette.hpp"

namespace wz::nespy {

/// The colours of nes-py, as 0xRRGGBB: the engine shows them too.
inline constexpr const uint32_t (&kNesPyPalette)[64] = palette_detail::kPacked;

/// What the screen shows before the first picture.
inline constexpr uint8_t kBlack = 0x0F;

}  // namespace wz::nespy
