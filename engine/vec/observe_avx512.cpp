#include "nes/avx512.hpp"
#include "vec/observe_tables.hpp"

namespace wz::observing {
namespace {

struct Bytes {
  explicit Bytes(const Source& source) : pixels(source.pixels[0]) {}
  template <bool kFar>
  __m512i pick(ptrdiff_t at, __m512i index) const {
    return pick_from<kFar>(pixels + at, index);
  }
  template <bool kFar>
  static __m512i pick_from(const uint8_t* from, __m512i index) {
    const __m512i low = _mm512_loadu_si512(from);
    if constexpr (!kFar) return _mm512_permutexvar_epi8(index, low);
    return _mm512_permutex2var_epi8(low, index, _mm512_loadu_si512(from + 64));
  }
  const uint8_t* pixels;
};

/// Picking before the look-up saves storing the looked-up row.
struct Indices {
  explicit Indices(const Source& source)
      : pixels(source.pixels[0]), lut(_mm512_loadu_si512(source.lut[0])) {}
  template <bool kFar>
  __m512i pick(ptrdiff_t at, __m512i index) const {
    return _mm512_permutexvar_epi8(Bytes::pick_from<kFar>(pixels + at, index), lut);
  }
  const uint8_t* pixels;
  __m512i lut;
};

struct Brighter {
  explicit Brighter(const Source& source)
      : pixels{source.pixels[0], source.pixels[1]},
        lut{_mm512_loadu_si512(source.lut[0]), _mm512_loadu_si512(source.lut[1])} {}
  template <bool kFar>
  __m512i pick(ptrdiff_t at, __m512i index) const {
    const __m512i a = Bytes::pick_from<kFar>(pixels[0] + at, index);
    const __m512i b = Bytes::pick_from<kFar>(pixels[1] + at, index);
    return _mm512_max_epu8(_mm512_permutexvar_epi8(a, lut[0]), _mm512_permutexvar_epi8(b, lut[1]));
  }
  const uint8_t* pixels[2];
  __m512i lut[2];
};

/// Divides the sums of `kGroups` groups and stores them as bytes.
template <int kGroups>
void store_row(const AreaPlan& plan, const __m512i* sums, uint8_t* out, int width) {
  const __m128i before = _mm_cvtsi32_si128(plan.division.before);
  const __m128i after = _mm_cvtsi32_si128(plan.division.after);
  const __m512i factor = _mm512_set1_epi16(static_cast<int16_t>(plan.division.factor));
  __m512i words[4];
  for (int i = 0; i < kGroups / 2; ++i) {
    const __m512i n = _mm512_packus_epi32(_mm512_srl_epi32(sums[2 * i], before),
                                          _mm512_srl_epi32(sums[2 * i + 1], before));
    words[i] = _mm512_srl_epi16(_mm512_mulhi_epu16(n, factor), after);
  }
  // Packing works inside 128-bit lanes: four outputs of each group lie side by side.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  for (int i = 0; i < kGroups / 2 && 32 * i < width; i += 2) {
    const __m512i high = i + 1 < kGroups / 2 ? words[i + 1] : words[i];
    const __m512i bytes =
        _mm512_permutexvar_epi32(order, _mm512_packus_epi16(words[i], high));
    const int left = width - 32 * i;
    const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    _mm512_mask_storeu_epi8(out + 32 * i, mask, bytes);
  }
}

template <int kGroups, bool kFar, class Pixels>
void resize_columns(const AreaPlan& plan, const Pixels& pixels, const Pick512* picks, uint8_t* out,
                    int width) {
  const __m512i half = _mm512_set1_epi32(static_cast<int32_t>(plan.total() / 2));
  const __m512i ones = _mm512_set1_epi16(1);
  __m512i sums[kGroups];
  for (auto& sum : sums) sum = half;
  ptrdiff_t at = static_cast<ptrdiff_t>(plan.top) * Picture::kStride;
  for (const RowStep& step : plan.steps) {
    __m512i row[kGroups];
    if (step.black) {
      for (auto& value : row) value = _mm512_setzero_si512();
    } else if constexpr (kFar) {
      const Pick512* pick = picks;
      for (auto& value : row) {
        value = _mm512_setzero_si512();
        for (int quad = 0; quad < plan.quads; ++quad, ++pick) {
          const __m512i bytes =
              pixels.template pick<true>(at + pick->offset, _mm512_load_si512(pick->index));
          const __m512i pairs = _mm512_maddubs_epi16(bytes, _mm512_load_si512(pick->weight));
          value = _mm512_add_epi32(value, _mm512_madd_epi16(pairs, ones));
        }
      }
    } else {
      for (int i = 0; i < kGroups; ++i) {
        const Pick512& pick = picks[i];
        const __m512i bytes =
            pixels.template pick<false>(at + pick.offset, _mm512_load_si512(pick.index));
        row[i] = _mm512_maddubs_epi16(bytes, _mm512_load_si512(pick.weight));
      }
    }
    at += Picture::kStride;
    const __m512i weight = _mm512_set1_epi16(step.weight);
    for (int i = 0; i < kGroups; ++i) {
      sums[i] = _mm512_add_epi32(sums[i], _mm512_madd_epi16(row[i], weight));
    }
    if (!step.ends) continue;
    store_row<kGroups>(plan, sums, out, width);
    out += plan.columns.output;
    const __m512i carry = _mm512_set1_epi16(step.carry);
    for (int i = 0; i < kGroups; ++i) {
      sums[i] = _mm512_add_epi32(half, _mm512_madd_epi16(row[i], carry));
    }
  }
}

template <int kGroups, class Pixels>
void resize_with(const AreaPlan& plan, const Pixels& pixels, uint8_t* out) {
  for (int group = 0; group < plan.groups; group += kGroups) {
    const Pick512* picks = plan.picks512.data() + group * plan.quads;
    const int width = plan.columns.output - 16 * group;
    if (plan.far) {
      resize_columns<kGroups, true>(plan, pixels, picks, out + 16 * group, width);
    } else {
      resize_columns<kGroups, false>(plan, pixels, picks, out + 16 * group, width);
    }
  }
}

template <class Pixels>
void resize(const AreaPlan& plan, const Pixels& pixels, uint8_t* out) {
  if (plan.groups % 6 == 0) return resize_with<6>(plan, pixels, out);
  if (plan.groups == 4) return resize_with<4>(plan, pixels, out);
  resize_with<2>(plan, pixels, out);
}

}  // namespace

void area_avx512(const AreaPlan& plan, const Source& source, uint8_t* out) {
  if (source.pixels[1]) return resize(plan, Brighter(source), out);
  if (source.lut[0]) return resize(plan, Indices(source), out);
  resize(plan, Bytes(source), out);
}

}  // namespace wz::observing
