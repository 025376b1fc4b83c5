#include <cstring>

#include "nes/render.hpp"
#include "nes/render_band.hpp"

namespace wz::render {

void draw_band_portable(const Band& band) {
  constexpr ptrdiff_t kStride = Picture::kStride;
  for (unsigned i = 0; i < kColumns; ++i) {
    const unsigned side = band.column + i >= 32;
    const unsigned column = (band.column + i) & 31;
    const unsigned attribute = band.attributes[side][column >> 2] >> band.attribute_shift;
    const uint64_t palette = (attribute >> (column & 2) & 3) * 4 * kEveryByte;
    const uint64_t* tile = band.tiles + band.names[side][column] * 8u + band.fine_y;
    uint8_t* out = band.out + 8 * i;
    for (unsigned row = 0; row < band.rows; ++row, out += kStride) {
      const uint64_t pixels = tile[row] | palette;
      std::memcpy(out, &pixels, 8);
    }
  }
}

}  // namespace wz::render
