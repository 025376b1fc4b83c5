#pragma once

#include <cstdint>

namespace wz::render {

/// Up to eight lines of background that lie in one row of tiles.
struct Band {
  const uint64_t* tiles;         ///< decoded rows of the background's pattern table
  const uint8_t* names[2];       ///< 32 tile numbers each: the row left and right of the seam
  const uint8_t* attributes[2];  ///< the 8 attribute bytes of these rows
  unsigned attribute_shift;      ///< 0 or 4: upper or lower half of the attribute bytes
  unsigned column;               ///< first tile, 0..31
  unsigned fine_y;               ///< first row inside the tiles
  unsigned rows;                 ///< 1..8, fine_y + rows <= 8
  uint8_t* out;                  ///< where the first tile goes: rows of Picture::kStride bytes
};

/// Draws 33 tiles. Pixel value = palette << 2 | tile pixel, so the low two bits of a transparent
/// pixel are zero.
void draw_band_portable(const Band& band);
void draw_band_avx2(const Band& band);
void draw_band_avx512(const Band& band);
void draw_band_neon(const Band& band);

inline constexpr unsigned kColumns = 33;
inline constexpr uint64_t kEveryByte = 0x0101010101010101u;

}  // namespace wz::render
