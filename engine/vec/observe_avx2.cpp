#include <immintrin.h>

#include <algorithm>

#include "vec/observe_tables.hpp"

namespace wz::observing {
namespace {

/// Rows are looked up, picked and summed in passes over this many, so that everything stays in the
/// fastest cache and no pass waits for the stores of the one before.
constexpr int kChunk = kRowsAtOnce256;
constexpr int kMaxGroups = kWidth / 8;

__m256i load(const void* at) { return _mm256_loadu_si256(static_cast<const __m256i*>(at)); }

void store(void* at, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(at), value); }

/// 32 entries, looked up 16 at a time: a byte with its high bit set picks zero.
struct Lut {
  explicit Lut(const uint8_t* entries)
      : low(_mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(entries)))),
        high(_mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(entries + 16)))) {}

  __m256i operator()(__m256i index) const {
    const __m256i in_low = _mm256_add_epi8(index, _mm256_set1_epi8(0x70));
    const __m256i in_high = _mm256_sub_epi8(index, _mm256_set1_epi8(0x10));
    return _mm256_or_si256(_mm256_shuffle_epi8(low, in_low), _mm256_shuffle_epi8(high, in_high));
  }
  __m256i low, high;
};

struct Rows {
  alignas(32) uint8_t bytes[kChunk][kWidth + 32];
  alignas(32) int16_t pairs[kChunk][kMaxGroups][16];
};

void look_up(const AreaPlan& plan, const Source& source, int y, uint8_t* to) {
  const ptrdiff_t at = static_cast<ptrdiff_t>(plan.top + y) * Picture::kStride;
  const uint8_t* first = source.pixels[0] + at;
  const Lut lut(source.lut[0]);
  if (source.pixels[1]) {
    const uint8_t* second = source.pixels[1] + at;
    const Lut lut2(source.lut[1]);
    for (int x = 0; x < kWidth; x += 32) {
      store(to + x, _mm256_max_epu8(lut(load(first + x)), lut2(load(second + x))));
    }
  } else {
    for (int x = 0; x < kWidth; x += 32) store(to + x, lut(load(first + x)));
  }
}

void pick(const AreaPlan& plan, const uint8_t* row, int16_t (*pairs)[16]) {
  for (const Pick256& pick : plan.picks256) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + pick.offset[0]));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + pick.offset[1]));
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
    const __m256i bytes = _mm256_shuffle_epi8(both, load(pick.index));
    store(*pairs++, _mm256_maddubs_epi16(bytes, load(pick.weight)));
  }
}

/// Adds up the rows of one output row and divides. `pairs` and `weights` have `count` rows.
class Summer {
 public:
  explicit Summer(const AreaPlan& plan)
      : half_(_mm256_set1_epi32(static_cast<int32_t>(plan.total() / 2))),
        factor_(_mm256_set1_epi16(static_cast<int16_t>(plan.division.factor))),
        before_(_mm_cvtsi32_si128(plan.division.before)),
        after_(_mm_cvtsi32_si128(plan.division.after)),
        groups_(plan.groups) {}

  void row(const int16_t (*const pairs)[kMaxGroups][16], const uint16_t* weights, int count,
           uint8_t* out) const {
    for (int group = 0; group < groups_; group += 4) {
      const __m256i low = words(pairs, weights, count, group);
      const __m256i high = words(pairs, weights, count, group + 2);
      // Packing works inside 128-bit lanes: four outputs of each group lie side by side.
      const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
      store(out + 8 * group,
            _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
    }
  }

 private:
  __m256i words(const int16_t (*const pairs)[kMaxGroups][16], const uint16_t* weights, int count,
                int group) const {
    __m256i a = half_, b = half_;
    for (int i = 0; i < count; ++i) {
      const __m256i weight = _mm256_set1_epi16(static_cast<int16_t>(weights[i]));
      a = _mm256_add_epi32(a, _mm256_madd_epi16(load(pairs[i][group]), weight));
      b = _mm256_add_epi32(b, _mm256_madd_epi16(load(pairs[i][group + 1]), weight));
    }
    const __m256i n =
        _mm256_packus_epi32(_mm256_srl_epi32(a, before_), _mm256_srl_epi32(b, before_));
    return _mm256_srl_epi16(_mm256_mulhi_epu16(n, factor_), after_);
  }

  __m256i half_, factor_;
  __m128i before_, after_;
  int groups_;
};

}  // namespace

void area_avx2(const AreaPlan& plan, const Source& source, uint8_t* out) {
  Rows rows;
  const Summer summer(plan);
  const Axis& axis = plan.rows;
  for (int done = 0; done < axis.output;) {
    const int begin = axis.first[static_cast<size_t>(done)];
    const int end = std::min(begin + kChunk, axis.source);
    for (int y = std::max(begin, plan.black_rows); y < end && source.lut[0]; ++y) {
      look_up(plan, source, y, rows.bytes[y - begin]);
    }
    for (int y = begin; y < end; ++y) {
      auto* pairs = rows.pairs[y - begin];
      if (y < plan.black_rows) {
        std::fill_n(pairs[0], 16 * plan.groups, int16_t{0});
      } else {
        const ptrdiff_t at = static_cast<ptrdiff_t>(plan.top + y) * Picture::kStride;
        pick(plan, source.lut[0] ? rows.bytes[y - begin] : source.pixels[0] + at, pairs);
      }
    }
    for (; done < axis.output; ++done) {
      const size_t i = static_cast<size_t>(done);
      if (axis.first[i] + axis.count[i] > end) break;
      alignas(32) uint8_t line[kWidth + 32];
      summer.row(rows.pairs + (axis.first[i] - begin), &axis.weights[i * static_cast<size_t>(axis.taps)],
                 axis.count[i], line);
      std::copy_n(line, plan.columns.output, out + done * plan.columns.output);
    }
  }
}

}  // namespace wz::observing
