#include <immintrin.h>

#include <algorithm>

#include "vec/observe_tables.hpp"

namespace wz::observing {
namespace {

/// Output rows that are summed before any of them is picked from, so that picking does not wait
/// for the sums to reach the cache.
constexpr int kAhead = 4;

struct alignas(32) Sums {
  int16_t columns[kWidth + 32];
};

__m256i load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }
__m128i load_half(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
void store_half(void* at, __m128i value) { _mm_storeu_si128(static_cast<__m128i*>(at), value); }

struct Bytes {
  explicit Bytes(const Source& source) : lines(source.lines[0]) {}
  struct Row {
    const uint8_t* line;
  };
  Row row(int y) const { return {lines.line(y)}; }
  __m256i operator()(const Row& row, int x) const { return load(row.line + x); }
  Lines lines;
};

/// 32 entries, looked up 16 at a time: the low ones always, what the high ones differ by only
/// where the index is that large, since a byte with its high bit set picks zero.
struct Indices {
  Indices(const Lines& from, const uint8_t* lut)
      : lines(from),
        low(_mm256_broadcastsi128_si256(load_half(lut))),
        change(_mm256_xor_si256(low, _mm256_broadcastsi128_si256(load_half(lut + 16)))) {}
  explicit Indices(const Source& source) : Indices(source.lines[0], source.lut[0]) {}
  using Row = Bytes::Row;
  Row row(int y) const { return {lines.line(y)}; }
  __m256i operator()(const Row& row, int x) const {
    const __m256i index = load(row.line + x);
    const __m256i high = _mm256_sub_epi8(index, _mm256_set1_epi8(16));
    return _mm256_xor_si256(_mm256_shuffle_epi8(low, index), _mm256_shuffle_epi8(change, high));
  }
  Lines lines;
  __m256i low, change;
};

struct Brighter {
  explicit Brighter(const Source& source) : first(source), second(source.lines[1], source.lut[1]) {}
  struct Row {
    Bytes::Row first, second;
  };
  Row row(int y) const { return {first.row(y), second.row(y)}; }
  __m256i operator()(const Row& row, int x) const {
    return _mm256_max_epu8(first(row.first, x), second(row.second, x));
  }
  Indices first, second;
};

/// Adds pairs of rows to the sums of 32 columns. `kFirst`: there are no sums yet.
template <bool kFirst, class Pixels>
void add_pair(const Pixels& pixels, const typename Pixels::Row& a, const typename Pixels::Row& b,
              int weights, int left, int width, Sums& sums) {
  const __m256i weight = _mm256_set1_epi16(static_cast<int16_t>(weights));
  for (int x = 0; x < width; x += 32) {
    const __m256i one = pixels(a, left + x), other = pixels(b, left + x);
    __m256i low = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(one, other), weight);
    __m256i high = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(one, other), weight);
    int16_t* at = sums.columns + x;
    // Unpacking works inside 128-bit lanes; memory is in order.
    if constexpr (!kFirst) {
      low = _mm256_add_epi16(low, _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(at)),
                                                          load_half(at + 16), 1));
      high =
          _mm256_add_epi16(high, _mm256_inserti128_si256(_mm256_castsi128_si256(load_half(at + 8)),
                                                         load_half(at + 24), 1));
    }
    store_half(at, _mm256_castsi256_si128(low));
    store_half(at + 8, _mm256_castsi256_si128(high));
    store_half(at + 16, _mm256_extracti128_si256(low, 1));
    store_half(at + 24, _mm256_extracti128_si256(high, 1));
  }
}

/// The usual three or four rows at once, without going through memory.
template <class Pixels>
void add_four(const Pixels& pixels, const typename Pixels::Row* rows, const int* weights, int left,
              int width, Sums& sums) {
  const __m256i weight = _mm256_set1_epi16(static_cast<int16_t>(weights[0]));
  const __m256i weight2 = _mm256_set1_epi16(static_cast<int16_t>(weights[1]));
  for (int x = 0; x < width; x += 32) {
    const __m256i a = pixels(rows[0], left + x), b = pixels(rows[1], left + x);
    const __m256i c = pixels(rows[2], left + x), d = pixels(rows[3], left + x);
    const __m256i low = _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_unpacklo_epi8(a, b), weight),
                                         _mm256_maddubs_epi16(_mm256_unpacklo_epi8(c, d), weight2));
    const __m256i high =
        _mm256_add_epi16(_mm256_maddubs_epi16(_mm256_unpackhi_epi8(a, b), weight),
                         _mm256_maddubs_epi16(_mm256_unpackhi_epi8(c, d), weight2));
    int16_t* at = sums.columns + x;
    store_half(at, _mm256_castsi256_si128(low));
    store_half(at + 8, _mm256_castsi256_si128(high));
    store_half(at + 16, _mm256_extracti128_si256(low, 1));
    store_half(at + 24, _mm256_extracti128_si256(high, 1));
  }
}

template <class Pixels>
void sum_rows(const AreaPlan& plan, const Pixels& pixels, int out, Sums& sums) {
  const Axis& axis = plan.rows;
  const int first = axis.first[static_cast<size_t>(out)];
  const int count = axis.count[static_cast<size_t>(out)];
  const int black = std::clamp(plan.black_rows - first, 0, count);
  const auto row = [&](int tap) { return pixels.row(plan.top + first + std::min(tap, count - 1)); };
  const auto weights = [&](int tap) {
    const int other = tap + 1 < count ? axis.weight(out, tap + 1) : 0;
    return axis.weight(out, tap) | other << 8;
  };
  const int left = plan.left, width = plan.columns.source;
  if (black == count) {
    std::fill(std::begin(sums.columns), std::end(sums.columns), int16_t{0});
  } else if (count - black == 3 || count - black == 4) {
    const typename Pixels::Row rows[4] = {row(black), row(black + 1), row(black + 2),
                                          row(black + 3)};
    const int both[2] = {weights(black), weights(black + 2)};
    add_four(pixels, rows, both, left, width, sums);
  } else {
    add_pair<true>(pixels, row(black), row(black + 1), weights(black), left, width, sums);
    for (int tap = black + 2; tap < count; tap += 2) {
      add_pair<false>(pixels, row(tap), row(tap + 1), weights(tap), left, width, sums);
    }
  }
}

/// Picks, weighs and divides one row of sums.
template <int kPicks>
class Picker {
 public:
  explicit Picker(const AreaPlan& plan)
      : plan_(plan),
        half_(_mm256_set1_epi32(static_cast<int32_t>(plan.total() / 2))),
        factor_(_mm256_set1_epi16(static_cast<int16_t>(plan.division.factor))),
        before_(_mm_cvtsi32_si128(plan.division.before)),
        after_(_mm_cvtsi32_si128(plan.division.after)) {}

  /// Writes 32 bytes for every four groups.
  void row(const Sums& sums, uint8_t* out) const {
    const Pick256* pick = plan_.picks256.data();
    // Packing works inside 128-bit lanes: four outputs of each group lie side by side.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (int group = 0; group < plan_.groups; group += 4, pick += 4 * kPicks, out += 32) {
      const __m256i bytes = _mm256_packus_epi16(words(sums, pick), words(sums, pick + 2 * kPicks));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                          _mm256_permutevar8x32_epi32(bytes, order));
    }
  }

 private:
  static __m256i weigh(const Sums& sums, const Pick256& pick) {
    const __m128i a = load_half(sums.columns + pick.offset[0]);
    const __m128i b = load_half(sums.columns + pick.offset[1]);
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    return _mm256_madd_epi16(_mm256_shuffle_epi8(both, load(pick.index)), load(pick.weight));
  }

  __m256i group(const Sums& sums, const Pick256* pick) const {
    __m256i pairs = _mm256_hadd_epi32(weigh(sums, pick[0]), weigh(sums, pick[1]));
    if constexpr (kPicks == 4) {
      pairs =
          _mm256_hadd_epi32(pairs, _mm256_hadd_epi32(weigh(sums, pick[2]), weigh(sums, pick[3])));
    }
    return _mm256_srl_epi32(_mm256_add_epi32(pairs, half_), before_);
  }

  __m256i words(const Sums& sums, const Pick256* pick) const {
    const __m256i n = _mm256_packus_epi32(group(sums, pick), group(sums, pick + kPicks));
    return _mm256_srl_epi16(_mm256_mulhi_epu16(n, factor_), after_);
  }

  const AreaPlan& plan_;
  __m256i half_, factor_;
  __m128i before_, after_;
};

template <int kPicks, class Pixels>
void resize(const AreaPlan& plan, const Pixels& pixels, const Target& target) {
  const Picker<kPicks> picker(plan);
  const int width = plan.columns.output;
  Sums sums[kAhead];
  for (int begin = target.begin; begin < target.end; begin += kAhead) {
    const int end = std::min(begin + kAhead, target.end);
    for (int out = begin; out < end; ++out) sum_rows(plan, pixels, out, sums[out - begin]);
    for (int out = begin; out < end; ++out) {
      uint8_t* row = target.out + out * width;
      // Whole vectors reach into the next rows, which are written later; there must be enough.
      if ((plan.rows.output - out) * width >= 8 * plan.groups) {
        picker.row(sums[out - begin], row);
      } else {
        uint8_t line[kWidth];
        picker.row(sums[out - begin], line);
        std::copy_n(line, width, row);
      }
    }
  }
}

template <class Pixels>
void resize(const AreaPlan& plan, const Pixels& pixels, const Target& target) {
  if (plan.picks == 2) return resize<2>(plan, pixels, target);
  resize<4>(plan, pixels, target);
}

}  // namespace

void area_avx2(const AreaPlan& plan, const Source& source, const Target& target) {
  if (source.two()) return resize(plan, Brighter(source), target);
  if (source.lut[0]) return resize(plan, Indices(source), target);
  resize(plan, Bytes(source), target);
}

}  // namespace wz::observing
