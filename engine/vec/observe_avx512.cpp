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
class Divider {
 public:
  Divider(const AreaPlan& plan, int width)
      : before_(_mm_cvtsi32_si128(plan.division.before)),
        after_(_mm_cvtsi32_si128(plan.division.after)),
        factor_(_mm512_set1_epi16(static_cast<int16_t>(plan.division.factor))) {
    for (int i = 0; i < kVectors; ++i) {
      const int left = width - 64 * i;
      mask_[i] = left >= 64 ? ~__mmask64{0} : left > 0 ? (__mmask64{1} << left) - 1 : 0;
    }
  }

  // Inlined, or the sums would live in memory.
  [[gnu::always_inline]] void store(const __m512i (&sums)[kGroups], uint8_t* out) const {
    __m512i words[2 * kVectors];
    for (int i = 0; i < kGroups / 2; ++i) {
      const __m512i n = _mm512_packus_epi32(_mm512_srl_epi32(sums[2 * i], before_),
                                            _mm512_srl_epi32(sums[2 * i + 1], before_));
      words[i] = _mm512_srl_epi16(_mm512_mulhi_epu16(n, factor_), after_);
    }
    if constexpr (kGroups % 4 != 0) words[kGroups / 2] = words[0];
    // Packing works inside 128-bit lanes: four outputs of each group lie side by side.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    for (int i = 0; i < kVectors; ++i) {
      const __m512i bytes = _mm512_packus_epi16(words[2 * i], words[2 * i + 1]);
      _mm512_mask_storeu_epi8(out + 64 * i, mask_[i], _mm512_permutexvar_epi32(order, bytes));
    }
  }

 private:
  static constexpr int kVectors = (kGroups + 3) / 4;
  __m128i before_, after_;
  __m512i factor_;
  __mmask64 mask_[kVectors];
};

/// Picks from one source row: `kGroups` vectors whose weighted sums are an output row's.
template <int kGroups, bool kFar>
class Picker {
 public:
  Picker(const Pick512* picks, int quads) : picks_(picks), quads_(quads) {
    for (int i = 0; i < kGroups; ++i) index_[i] = _mm512_load_si512(picks[i * quads].index);
  }

  template <class Pixels>
  [[gnu::always_inline]] void pick(const Pixels& pixels, __m512i (&row)[kGroups]) const {
    for (int i = 0; i < kGroups; ++i) {
      const Pick512* pick = picks_ + (kFar ? i * quads_ : i);
      const __m512i bytes = pixels.template pick<kFar>(pick->offset, index_[i]);
      row[i] = _mm512_maddubs_epi16(bytes, _mm512_load_si512(pick->weight));
      if constexpr (kFar) {
        const __m512i ones = _mm512_set1_epi16(1);
        row[i] = _mm512_madd_epi16(row[i], ones);
        for (int quad = 1; quad < quads_; ++quad) {
          ++pick;
          const __m512i more =
              pixels.template pick<true>(pick->offset, _mm512_load_si512(pick->index));
          const __m512i pairs = _mm512_maddubs_epi16(more, _mm512_load_si512(pick->weight));
          row[i] = _mm512_add_epi32(row[i], _mm512_madd_epi16(pairs, ones));
        }
      }
    }
  }

 private:
  const Pick512* picks_;
  int quads_;
  __m512i index_[kGroups];
};

template <int kGroups, bool kFar, class Pixels>
void resize_columns(const AreaPlan& plan, Pixels pixels, int group, const Target& target) {
  const Picker<kGroups, kFar> picker(plan.picks512.data() + group * plan.quads, plan.quads);
  const Divider<kGroups> divider(plan, plan.columns.output - 16 * group);
  const __m512i half = _mm512_set1_epi32(static_cast<int32_t>(plan.total() / 2));
  const ptrdiff_t width = plan.columns.output;
  uint8_t* out = target.out + target.begin * width + 16 * group;
  uint8_t* const end = target.out + target.end * width + 16 * group;
  int y = plan.rows.first[static_cast<size_t>(target.begin)];
  const RowStep* step = plan.steps.data() + y;
  // The first row may be the last of an output row that is not wanted.
  bool shared = target.begin > 0 && step->ends && step->carry != 0;
  __m512i sums[kGroups], row[kGroups];
  for (auto& sum : sums) sum = half;
  for (y += plan.top; out != end; ++y, ++step) {
    if (step->black) {
      for (auto& value : row) value = _mm512_setzero_si512();
    } else {
      pixels.go_to(y);
      picker.pick(pixels, row);
    }
    if (!shared) {
      const __m512i weight = _mm512_set1_epi16(step->weight);
      for (int i = 0; i < kGroups; ++i) {
        sums[i] = _mm512_add_epi32(sums[i], _mm512_madd_epi16(row[i], weight));
      }
      if (!step->ends) continue;
      divider.store(sums, out);
      out += width;
    }
    shared = false;
    const __m512i carry = _mm512_set1_epi16(step->carry);
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
