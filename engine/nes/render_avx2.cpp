#include <immintrin.h>

#include <cstring>

#include "nes/render.hpp"
#include "nes/render_band.hpp"

namespace wz::render {
namespace {

constexpr ptrdiff_t kStride = Picture::kStride;

/// The 33 columns from left to right: tile numbers, and palettes already in every byte.
struct Columns {
  uint64_t palettes[kColumns + 3];
  uint8_t names[64];

  explicit Columns(const Band& band) {
    std::memcpy(names, band.names[0], 32);
    std::memcpy(names + 32, band.names[1], 32);
    // Pairs of columns share a palette, so the seam lies between pairs.
    const unsigned first = band.column >> 1;
    for (unsigned i = 0; i < 17; ++i) {
      const unsigned pair = first + i;
      const unsigned attribute = band.attributes[pair >> 4 & 1][pair >> 1 & 7];
      const uint64_t palette =
          (attribute >> (band.attribute_shift + 2 * (pair & 1)) & 3) * 4 * kEveryByte;
      palettes[2 * i] = palettes[2 * i + 1] = palette;
    }
    palettes[34] = palettes[35] = 0;
  }
};

__m256i load(const uint64_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

void store(uint8_t* at, __m256i value) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), value);
}

/// Four rows of four tiles side by side, turned from tiles into lines.
struct Block {
  __m256i line[4];

  Block(const uint64_t* const tile[4], const uint64_t* palettes, unsigned row) {
    __m256i t[4];
    for (unsigned i = 0; i < 4; ++i) {
      t[i] = _mm256_or_si256(load(tile[i] + row),
                             _mm256_set1_epi64x(static_cast<long long>(palettes[i])));
    }
    const __m256i a = _mm256_unpacklo_epi64(t[0], t[1]);
    const __m256i b = _mm256_unpackhi_epi64(t[0], t[1]);
    const __m256i c = _mm256_unpacklo_epi64(t[2], t[3]);
    const __m256i d = _mm256_unpackhi_epi64(t[2], t[3]);
    line[0] = _mm256_permute2x128_si256(a, c, 0x20);
    line[1] = _mm256_permute2x128_si256(b, d, 0x20);
    line[2] = _mm256_permute2x128_si256(a, c, 0x31);
    line[3] = _mm256_permute2x128_si256(b, d, 0x31);
  }
};

void draw_last_column(const Band& band, const uint64_t* tile, uint64_t palette) {
  uint8_t* out = band.out + 8 * (kColumns - 1);
  for (unsigned row = 0; row < band.rows; ++row, out += kStride) {
    const uint64_t pixels = tile[band.fine_y + row] | palette;
    std::memcpy(out, &pixels, 8);
  }
}

}  // namespace

void draw_band_avx2(const Band& band) {
  if (band.rows < 8) return draw_band_portable(band);
  const Columns columns(band);
  const uint8_t* names = columns.names + band.column;
  const uint64_t* palettes = columns.palettes + (band.column & 1);
  for (unsigned i = 0; i + 4 < kColumns; i += 4) {
    const uint64_t* const tile[4] = {band.tiles + names[i] * 8u, band.tiles + names[i + 1] * 8u,
                                     band.tiles + names[i + 2] * 8u,
                                     band.tiles + names[i + 3] * 8u};
    uint8_t* out = band.out + 8 * i;
    for (unsigned half = 0; half < 8; half += 4) {
      const Block block(tile, palettes + i, half);
      for (unsigned row = 0; row < 4; ++row, out += kStride) store(out, block.line[row]);
    }
  }
  draw_last_column(band, band.tiles + names[kColumns - 1] * 8u, palettes[kColumns - 1]);
}

}  // namespace wz::render
