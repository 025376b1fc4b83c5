#include <arm_neon.h>

#include <algorithm>

#include "vec/observe_tables.hpp"

namespace wz::observing {
namespace {

struct Sums {
  alignas(16) uint16_t columns[kWidth + 32];
};

struct Bytes {
  explicit Bytes(const Source& source) : lines(source.lines[0]) {}
  struct Row {
    const uint8_t* line;
  };
  Row row(int y) const { return {lines.line(y)}; }
  uint8x16_t operator()(const Row& row, int x) const { return vld1q_u8(row.line + x); }
  Lines lines;
};

/// All 32 entries are looked up by one instruction; a larger index picks zero.
struct Indices {
  Indices(const Lines& from, const uint8_t* entries)
      : lines(from), lut({vld1q_u8(entries), vld1q_u8(entries + 16)}) {}
  explicit Indices(const Source& source) : Indices(source.lines[0], source.lut[0]) {}
  using Row = Bytes::Row;
  Row row(int y) const { return {lines.line(y)}; }
  uint8x16_t operator()(const Row& row, int x) const {
    return vqtbl2q_u8(lut, vld1q_u8(row.line + x));
  }
  Lines lines;
  uint8x16x2_t lut;
};

struct Brighter {
  explicit Brighter(const Source& source) : first(source), second(source.lines[1], source.lut[1]) {}
  struct Row {
    Bytes::Row first, second;
  };
  Row row(int y) const { return {first.row(y), second.row(y)}; }
  uint8x16_t operator()(const Row& row, int x) const {
    return vmaxq_u8(first(row.first, x), second(row.second, x));
  }
  Indices first, second;
};

/// Sums of columns; weights of rows add up to 127 at most, so sixteen bits are enough.
template <class Pixels>
void sum_rows(const AreaPlan& plan, const Pixels& pixels, int out, Sums& sums) {
  const Axis& axis = plan.rows;
  const int first = axis.first[static_cast<size_t>(out)];
  const int count = axis.count[static_cast<size_t>(out)];
  std::fill(std::begin(sums.columns), std::end(sums.columns), uint16_t{0});
  for (int tap = std::clamp(plan.black_rows - first, 0, count); tap < count; ++tap) {
    const typename Pixels::Row row = pixels.row(plan.top + first + tap);
    const uint8x16_t weight = vdupq_n_u8(static_cast<uint8_t>(axis.weight(out, tap)));
    for (int x = 0; x < plan.columns.source; x += 16) {
      const uint8x16_t bytes = pixels(row, plan.left + x);
      uint16_t* at = sums.columns + x;
      vst1q_u16(at, vmlal_u8(vld1q_u16(at), vget_low_u8(bytes), vget_low_u8(weight)));
      vst1q_u16(at + 8, vmlal_high_u8(vld1q_u16(at + 8), bytes, weight));
    }
  }
}

/// Picks, weighs and divides one row of sums.
class Picker {
 public:
  explicit Picker(const AreaPlan& plan)
      : plan_(plan),
        half_(vdupq_n_u32(plan.total() / 2)),
        before_(vdupq_n_s32(-plan.division.before)),
        after_(vdupq_n_s16(static_cast<int16_t>(-plan.division.after))) {}

  /// Writes eight bytes for every group.
  void row(const Sums& sums, uint8_t* out) const {
    const Pick256* pick = plan_.picks256.data();
    for (int group = 0; group < plan_.groups; ++group, pick += plan_.picks, out += 8) {
      const uint16x8_t n = vcombine_u16(four(sums, pick, 0), four(sums, pick, 1));
      const uint32x4_t low = vmull_n_u16(vget_low_u16(n), plan_.division.factor);
      const uint32x4_t high = vmull_high_n_u16(n, plan_.division.factor);
      const uint16x8_t quotient = vcombine_u16(vshrn_n_u32(low, 16), vshrn_n_u32(high, 16));
      vst1_u8(out, vmovn_u16(vshlq_u16(quotient, after_)));
    }
  }

 private:
  struct Products {
    uint32x4_t low, high;
  };

  static Products weigh(const Sums& sums, const Pick256& pick, int half) {
    const uint8x16_t window = vreinterpretq_u8_u16(vld1q_u16(sums.columns + pick.offset[half]));
    const uint16x8_t value =
        vreinterpretq_u16_u8(vqtbl1q_u8(window, vld1q_u8(pick.index + 16 * half)));
    const uint16x8_t weight = vreinterpretq_u16_s16(vld1q_s16(pick.weight + 8 * half));
    return {vmull_u16(vget_low_u16(value), vget_low_u16(weight)), vmull_high_u16(value, weight)};
  }

  /// The outputs of one half of a group: each is four products side by side, or eight.
  uint16x4_t four(const Sums& sums, const Pick256* pick, int half) const {
    uint32x4_t pairs[2];
    for (int i = 0; i < 2; ++i) {
      if (plan_.picks == 2) {
        const Products two = weigh(sums, pick[i], half);
        pairs[i] = vpaddq_u32(two.low, two.high);
      } else {
        const Products one = weigh(sums, pick[2 * i], half);
        const Products other = weigh(sums, pick[2 * i + 1], half);
        pairs[i] = vpaddq_u32(vaddq_u32(one.low, one.high), vaddq_u32(other.low, other.high));
      }
    }
    const uint32x4_t totals = vaddq_u32(vpaddq_u32(pairs[0], pairs[1]), half_);
    return vmovn_u32(vshlq_u32(totals, before_));
  }

  const AreaPlan& plan_;
  uint32x4_t half_;
  int32x4_t before_;  ///< negative: shifts to the right
  int16x8_t after_;
};

template <class Pixels>
void resize(const AreaPlan& plan, const Pixels& pixels, const Target& target) {
  const Picker picker(plan);
  const int width = plan.columns.output;
  Sums sums;
  for (int out = target.begin; out < target.end; ++out) {
    sum_rows(plan, pixels, out, sums);
    uint8_t* row = target.out + out * width;
    // Whole vectors reach into the next rows, which are written later; there must be enough.
    if ((plan.rows.output - out) * width >= 8 * plan.groups) {
      picker.row(sums, row);
    } else {
      uint8_t line[kWidth];
      picker.row(sums, line);
      std::copy_n(line, width, row);
    }
  }
}

}  // namespace

void area_neon(const AreaPlan& plan, const Source& source, const Target& target) {
  if (source.two()) return resize(plan, Brighter(source), target);
  if (source.lut[0]) return resize(plan, Indices(source), target);
  resize(plan, Bytes(source), target);
}

}  // namespace wz::observing
