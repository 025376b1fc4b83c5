#include "nes/avx512.hpp"

#include <cstring>

#include "nes/render.hpp"
#include "nes/render_band.hpp"

namespace wz::render {
namespace {

constexpr ptrdiff_t kStride = Picture::kStride;

/// What the 64 columns on both sides of the seam show.
struct Columns {
  alignas(64) uint32_t tiles[64];     ///< offsets of decoded tiles, in bytes
  alignas(64) uint32_t palettes[64];  ///< palette << 2 in every byte

  explicit Columns(const Band& band) {
    const __m128i attributes =
        _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(band.attributes[0])),
                           _mm_loadl_epi64(reinterpret_cast<const __m128i*>(band.attributes[1])));
    // Every attribute byte serves four columns: two bits for the left pair, two for the right.
    const __m512i spread = _mm512_slli_epi32(_mm512_cvtepu8_epi32(attributes), 2);
    const int shift = static_cast<int>(band.attribute_shift);
    const __m512i pairs = _mm512_or_si512(_mm512_srl_epi32(spread, _mm_cvtsi32_si128(shift)),
                                          _mm512_sll_epi32(spread, _mm_cvtsi32_si128(14 - shift)));
    const __m512i twos = _mm512_and_si512(pairs, _mm512_set1_epi32(0x000C000C));
    const __m512i all = _mm512_or_si512(twos, _mm512_slli_epi32(twos, 8));
    const __m512i each =
        _mm512_set_epi32(0x0F0F0F0F, 0x0E0E0E0E, 0x0D0D0D0D, 0x0C0C0C0C, 0x0B0B0B0B, 0x0A0A0A0A,
                         0x09090909, 0x08080808, 0x07070707, 0x06060606, 0x05050505, 0x04040404,
                         0x03030303, 0x02020202, 0x01010101, 0x00000000);
    for (int i = 0; i < 4; ++i) {
      const __m128i names =
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(band.names[i / 2] + 16 * (i % 2)));
      _mm512_store_si512(tiles + 16 * i, _mm512_slli_epi32(_mm512_cvtepu8_epi32(names), 6));
      const __m512i index = _mm512_add_epi8(each, _mm512_set1_epi8(static_cast<char>(16 * i)));
      _mm512_store_si512(palettes + 16 * i, _mm512_permutexvar_epi8(index, all));
    }
  }
};

/// Eight tiles side by side, turned from tiles into lines.
struct Block {
  __m512i line[8];

  Block(const Band& band, const Columns& columns, unsigned first) {
    __m512i t[8];
    for (unsigned i = 0; i < 8; ++i) {
      const auto* tiles = reinterpret_cast<const uint8_t*>(band.tiles);
      t[i] = _mm512_or_si512(_mm512_load_si512(tiles + columns.tiles[first + i]),
                             _mm512_set1_epi32(static_cast<int32_t>(columns.palettes[first + i])));
    }
    // An 8 x 8 transposition of 64-bit values, in steps of 1, 2 and 4.
    __m512i a[8];
    for (unsigned i = 0; i < 8; i += 2) {
      a[i] = _mm512_unpacklo_epi64(t[i], t[i + 1]);
      a[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 1]);
    }
    for (unsigned odd = 0; odd < 2; ++odd) {
      const __m512i low = _mm512_shuffle_i64x2(a[odd], a[odd + 2], 0x88);
      const __m512i high = _mm512_shuffle_i64x2(a[odd], a[odd + 2], 0xDD);
      const __m512i low2 = _mm512_shuffle_i64x2(a[odd + 4], a[odd + 6], 0x88);
      const __m512i high2 = _mm512_shuffle_i64x2(a[odd + 4], a[odd + 6], 0xDD);
      line[odd] = _mm512_shuffle_i64x2(low, low2, 0x88);
      line[odd + 4] = _mm512_shuffle_i64x2(low, low2, 0xDD);
      line[odd + 2] = _mm512_shuffle_i64x2(high, high2, 0x88);
      line[odd + 6] = _mm512_shuffle_i64x2(high, high2, 0xDD);
    }
  }
};

void draw_last_column(const Band& band, const Columns& columns) {
  const unsigned last = band.column + kColumns - 1;
  const uint64_t* tile = band.tiles + columns.tiles[last] / 8 + band.fine_y;
  const uint64_t palette = columns.palettes[last] * uint64_t{0x100000001};
  uint8_t* out = band.out + 8 * (kColumns - 1);
  for (unsigned row = 0; row < band.rows; ++row, out += kStride) {
    const uint64_t pixels = tile[row] | palette;
    std::memcpy(out, &pixels, 8);
  }
}

}  // namespace

void draw_band_avx512(const Band& band) {
  const Columns columns(band);
  for (unsigned i = 0; i + 8 < kColumns; i += 8) {
    const Block block(band, columns, band.column + i);
    uint8_t* out = band.out + 8 * i;
    if (band.rows == 8) {
      for (unsigned row = 0; row < 8; ++row) {
        _mm512_store_si512(out + row * kStride, block.line[row]);
      }
    } else {
      alignas(64) uint8_t lines[8][64];
      for (unsigned row = 0; row < 8; ++row) _mm512_store_si512(lines[row], block.line[row]);
      for (unsigned row = 0; row < band.rows; ++row) {
        std::memcpy(out + row * kStride, lines[band.fine_y + row], 64);
      }
    }
  }
  draw_last_column(band, columns);
}

}  // namespace wz::render
