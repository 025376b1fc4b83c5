#include "nes/avx512.hpp"
#include "vec/observe_tables.hpp"

namespace wz::observing {
namespace {

template <bool kFar>
__m512i pick_from(const uint8_t* from, __m512i index) {
  const __m512i low = _mm512_loadu_si512(from);
  if constexpr (!kFar) return _mm512_permutexvar_epi8(index, low);
  return _mm512_permutex2var_epi8(low, index, _mm512_loadu_si512(from + 64));
}

struct Bytes {
  explicit Bytes(const Source& source) : lines(source.lines[0]) {}
  void go_to(int y) { line = lines.line(y); }
  template <bool kFar>
  __m512i pick(int at, __m512i index) const {
    return pick_from<kFar>(line + at, index);
  }
  Lines lines;
  const uint8_t* line = nullptr;
};

/// Picking before the look-up saves storing the looked-up row.
struct Indices {
  explicit Indices(const Source& source)
      : lines(source.lines[0]), lut(_mm512_loadu_si512(source.lut[0])) {}
  void go_to(int y) { line = lines.line(y); }
  template <bool kFar>
  __m512i pick(int at, __m512i index) const {
    return _mm512_permutexvar_epi8(pick_from<kFar>(line + at, index), lut);
  }
  Lines lines;
  __m512i lut;
  const uint8_t* line = nullptr;
};

struct Brighter {
  explicit Brighter(const Source& source)
      : first(source), second({{source.lines[1], {}}, {source.lut[1], nullptr}}) {}
  void go_to(int y) {
    first.go_to(y);
    second.go_to(y);
  }
  template <bool kFar>
  __m512i pick(int at, __m512i index) const {
    return _mm512_max_epu8(first.pick<kFar>(at, index), second.pick<kFar>(at, index));
  }
  Indices first, second;
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
    const __m512i bytes = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(words[i], high));
    const int left = width - 32 * i;
    const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    _mm512_mask_storeu_epi8(out + 32 * i, mask, bytes);
  }
}

/// One source row: `kGroups` vectors whose weighted sums are the output row's.
template <int kGroups, bool kFar, class Pixels>
void pick_row(const Pixels& pixels, const Pick512* picks, int quads, __m512i* row) {
  const __m512i ones = _mm512_set1_epi16(1);
  for (int i = 0; i < kGroups; ++i) {
    if constexpr (kFar) {
      row[i] = _mm512_setzero_si512();
      for (int quad = 0; quad < quads; ++quad, ++picks) {
        const __m512i bytes =
            pixels.template pick<true>(picks->offset, _mm512_load_si512(picks->index));
        const __m512i pairs = _mm512_maddubs_epi16(bytes, _mm512_load_si512(picks->weight));
        row[i] = _mm512_add_epi32(row[i], _mm512_madd_epi16(pairs, ones));
      }
    } else {
      const __m512i bytes =
          pixels.template pick<false>(picks[i].offset, _mm512_load_si512(picks[i].index));
      row[i] = _mm512_maddubs_epi16(bytes, _mm512_load_si512(picks[i].weight));
    }
  }
}

template <int kGroups, bool kFar, class Pixels>
void resize_columns(const AreaPlan& plan, Pixels pixels, int group, const Target& target) {
  const Pick512* picks = plan.picks512.data() + group * plan.quads;
  const int width = plan.columns.output - 16 * group;
  const __m512i half = _mm512_set1_epi32(static_cast<int32_t>(plan.total() / 2));
  uint8_t* out = target.out + target.begin * plan.columns.output + 16 * group;
  __m512i sums[kGroups], row[kGroups];
  for (auto& sum : sums) sum = half;
  int y = plan.rows.first[static_cast<size_t>(target.begin)];
  // The first row may be the last of an output row that is not wanted.
  bool shared = target.begin > 0 && plan.steps[static_cast<size_t>(y)].ends &&
                plan.steps[static_cast<size_t>(y)].carry != 0;
  for (int done = target.begin; done < target.end; ++y) {
    const RowStep& step = plan.steps[static_cast<size_t>(y)];
    if (step.black) {
      for (auto& value : row) value = _mm512_setzero_si512();
    } else {
      pixels.go_to(plan.top + y);
      pick_row<kGroups, kFar>(pixels, picks, plan.quads, row);
    }
    if (!shared) {
      const __m512i weight = _mm512_set1_epi16(step.weight);
      for (int i = 0; i < kGroups; ++i) {
        sums[i] = _mm512_add_epi32(sums[i], _mm512_madd_epi16(row[i], weight));
      }
      if (!step.ends) continue;
      store_row<kGroups>(plan, sums, out, width);
      out += plan.columns.output;
      ++done;
    }
    shared = false;
    const __m512i carry = _mm512_set1_epi16(step.carry);
    for (int i = 0; i < kGroups; ++i) {
      sums[i] = _mm512_add_epi32(half, _mm512_madd_epi16(row[i], carry));
    }
  }
}

template <int kGroups, class Pixels>
void resize_with(const AreaPlan& plan, const Pixels& pixels, const Target& target) {
  for (int group = 0; group < plan.groups; group += kGroups) {
    if (plan.far) {
      resize_columns<kGroups, true>(plan, pixels, group, target);
    } else {
      resize_columns<kGroups, false>(plan, pixels, group, target);
    }
  }
}

template <class Pixels>
void resize(const AreaPlan& plan, const Pixels& pixels, const Target& target) {
  if (plan.groups % 6 == 0) return resize_with<6>(plan, pixels, target);
  if (plan.groups == 4) return resize_with<4>(plan, pixels, target);
  resize_with<2>(plan, pixels, target);
}

}  // namespace

void area_avx512(const AreaPlan& plan, const Source& source, const Target& target) {
  if (source.two()) return resize(plan, Brighter(source), target);
  if (source.lut[0]) return resize(plan, Indices(source), target);
  resize(plan, Bytes(source), target);
}

}  // namespace wz::observing
