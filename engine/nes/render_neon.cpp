#include <arm_neon.h>

#include <cstring>

#include "nes/render.hpp"
#include "nes/render_band.hpp"

namespace wz::render {
namespace {

/// Tile rows and palettes of one column; palettes are already in every byte.
struct Column {
  const uint64_t* tile;
  uint64_t palette;

  Column(const Band& band, unsigned i) {
    const unsigned side = band.column + i >= 32;
    const unsigned column = (band.column + i) & 31;
    const unsigned attribute = band.attributes[side][column >> 2] >> band.attribute_shift;
    palette = (attribute >> (column & 2) & 3) * 4 * kEveryByte;
    tile = band.tiles + band.names[side][column] * 8u + band.fine_y;
  }
};

void store(uint8_t* at, uint64x2_t value) { vst1q_u8(at, vreinterpretq_u8_u64(value)); }

}  // namespace

/// Two columns side by side, two rows at a time: rows of tiles are turned into lines.
void draw_band_neon(const Band& band) {
  constexpr ptrdiff_t kStride = Picture::kStride;
  for (unsigned i = 0; i + 1 < kColumns; i += 2) {
    const Column left(band, i), right(band, i + 1);
    const uint64x2_t palettes = vcombine_u64(vcreate_u64(left.palette), vcreate_u64(right.palette));
    uint8_t* out = band.out + 8 * i;
    unsigned row = 0;
    for (; row + 1 < band.rows; row += 2, out += 2 * kStride) {
      const uint64x2_t a = vld1q_u64(left.tile + row), b = vld1q_u64(right.tile + row);
      store(out, vorrq_u64(vzip1q_u64(a, b), palettes));
      store(out + kStride, vorrq_u64(vzip2q_u64(a, b), palettes));
    }
    if (row < band.rows) {
      const uint64x2_t both = vcombine_u64(vld1_u64(left.tile + row), vld1_u64(right.tile + row));
      store(out, vorrq_u64(both, palettes));
    }
  }
  const Column last(band, kColumns - 1);
  uint8_t* out = band.out + 8 * (kColumns - 1);
  for (unsigned row = 0; row < band.rows; ++row, out += kStride) {
    const uint64_t pixels = last.tile[row] | last.palette;
    std::memcpy(out, &pixels, 8);
  }
}

}  // namespace wz::render
