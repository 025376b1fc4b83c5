#include "vec/observe_tables.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace wz::observing {
namespace {

/// A window of bytes may reach past the screen, but not past the row.
constexpr int last_offset(int window) { return Picture::kStride - 8 - window; }

bool weights_fit(const Axis& axis) {
  // Products are summed in signed pairs of 16 bits.
  for (int out = 0; out < axis.output; ++out) {
    for (int tap = 0; tap < axis.taps; tap += 2) {
      const int other = tap + 1 < axis.taps ? axis.weight(out, tap + 1) : 0;
      if (axis.weight(out, tap) + other > 128 || axis.weight(out, tap) > 127 || other > 127) {
        return false;
      }
    }
  }
  return true;
}

/// One tap quad of one output pixel into four bytes of a pick. `origin` is where the window starts.
void fill_pick(const Axis& axis, int left, int out, int quad, int origin, uint8_t* index,
               int8_t* weight) {
  for (int i = 0; i < 4; ++i) {
    const int tap = 4 * quad + i;
    const bool used = out < axis.output && tap < axis.count[static_cast<size_t>(out)];
    index[i] =
        used ? static_cast<uint8_t>(left + axis.first[static_cast<size_t>(out)] + tap - origin)
             : uint8_t{0};
    weight[i] = used ? static_cast<int8_t>(axis.weight(out, tap)) : int8_t{0};
  }
}

/// First and last source column that a quad of these output pixels reads; false if none.
bool reach(const Axis& axis, int begin, int end, int quad, int& low, int& high) {
  low = axis.source;
  high = -1;
  for (int out = begin; out < std::min(end, axis.output); ++out) {
    const int first = axis.first[static_cast<size_t>(out)];
    const int count = axis.count[static_cast<size_t>(out)];
    if (count <= 4 * quad) continue;
    low = std::min(low, first + 4 * quad);
    high = std::max(high, first + std::min(count, 4 * quad + 4) - 1);
  }
  return high >= low;
}

std::vector<RowStep> row_steps(const Axis& rows, int black_rows) {
  std::vector<RowStep> steps(static_cast<size_t>(rows.source), RowStep{});
  for (int out = 0; out < rows.output; ++out) {
    const int first = rows.first[static_cast<size_t>(out)];
    const int count = rows.count[static_cast<size_t>(out)];
    for (int tap = 0; tap < count; ++tap) {
      RowStep& step = steps[static_cast<size_t>(first + tap)];
      const auto weight = static_cast<int16_t>(rows.weight(out, tap));
      (tap == 0 && step.ends ? step.carry : step.weight) = weight;
      step.black = first + tap < black_rows;
    }
    steps[static_cast<size_t>(first + count - 1)].ends = true;
  }
  return steps;
}

}  // namespace

Axis::Axis(int source_size, int output_size) : source(source_size), output(output_size) {
  const int common = std::gcd(source, output);
  total = source / common;
  const int unit = output / common;  // the weight of a source pixel that is covered whole
  taps = 0;
  for (int out = 0; out < output; ++out) {
    const int begin = out * total / unit;
    const int end = ((out + 1) * total + unit - 1) / unit;
    first.push_back(begin);
    count.push_back(end - begin);
    taps = std::max(taps, end - begin);
  }
  weights.assign(static_cast<size_t>(output) * static_cast<size_t>(taps), 0);
  for (int out = 0; out < output; ++out) {
    for (int tap = 0; tap < count[static_cast<size_t>(out)]; ++tap) {
      const int pixel = first[static_cast<size_t>(out)] + tap;
      const int from = std::max(out * total, pixel * unit);
      const int to = std::min((out + 1) * total, (pixel + 1) * unit);
      weights[static_cast<size_t>(out * taps + tap)] = static_cast<uint16_t>(to - from);
    }
  }
}

Division::Division(uint32_t total) {
  uint32_t odd = total;
  while (odd % 2 == 0 && odd > 2) {
    odd /= 2;
    ++before;
  }
  if (odd < 2 || odd > 256) return;
  for (after = 0; after < 16 && !exact; ++after) {
    const uint32_t candidate = ((uint32_t{1} << (16 + after)) + odd - 1) / odd;
    if (candidate > 0xFFFF) break;
    factor = static_cast<uint16_t>(candidate);
    // The quotient never falls as n grows, so it is right everywhere if it is right at its steps.
    exact = true;
    for (uint32_t q = 1; q <= 255 && exact; ++q) {
      const auto divide = [&](uint32_t n) { return n * factor >> 16 >> after; };
      exact = divide(q * odd) == q && divide(q * odd - 1) == q - 1;
    }
    exact = exact && ((255 * odd + odd / 2) * factor >> 16 >> after) == 255;
    if (exact) return;
  }
  exact = false;
}

bool AreaPlan::build_picks512(int window) {
  constexpr int kOutputs = 16;
  // Groups are worked on two, four or six at a time.
  const int needed = (columns.output + kOutputs - 1) / kOutputs;
  const int chunk = needed > 4 ? 6 : needed > 2 ? 4 : 2;
  groups = (needed + chunk - 1) / chunk * chunk;
  picks512.assign(static_cast<size_t>(groups * quads), Pick512{});
  for (int group = 0; group < groups; ++group) {
    for (int quad = 0; quad < quads; ++quad) {
      int low, high;
      const int begin = group * kOutputs;
      if (!reach(columns, begin, begin + kOutputs, quad, low, high)) continue;
      Pick512& pick = picks512[static_cast<size_t>(group * quads + quad)];
      pick.offset = std::min(left + low, last_offset(window));
      if (left + high - pick.offset >= window) return false;
      for (int i = 0; i < kOutputs; ++i) {
        fill_pick(columns, left, begin + i, quad, pick.offset, pick.index + 4 * i,
                  pick.weight + 4 * i);
      }
    }
  }
  return true;
}

/// Eight outputs make a group. The instruction that adds neighbours up wants them in this order:
/// with two picks, windows hold outputs 0 1, 4 5 and 2 3, 6 7; with four, 0, 4 and 1, 5 and so on.
bool AreaPlan::build_picks256() {
  constexpr int kOutputs = 8, kWindow = 8;
  if (rows.total > 127 || columns.taps > kWindow) return false;
  picks = columns.taps > 4 ? 4 : 2;
  const int in_window = 4 / picks;
  groups = ((columns.output + kOutputs - 1) / kOutputs + 3) / 4 * 4;
  picks256.assign(static_cast<size_t>(groups * picks), Pick256{});
  for (int i = 0; i < groups * picks * 2; ++i) {
    const int group = i / (2 * picks), number = i / 2 % picks, half = i % 2;
    const int begin = kOutputs * group + 4 * half + in_window * number;
    if (begin >= columns.output) continue;
    Pick256& pick = picks256[static_cast<size_t>(group * picks + number)];
    const int origin = columns.first[static_cast<size_t>(begin)];
    pick.offset[half] = origin;
    for (int slot = 0; slot < kWindow; ++slot) {
      const int per_output = kWindow / in_window;
      const int out = begin + slot / per_output, tap = slot % per_output;
      if (out >= columns.output || tap >= columns.count[static_cast<size_t>(out)]) continue;
      const int at = columns.first[static_cast<size_t>(out)] + tap - origin;
      if (at >= kWindow) return false;
      const int word = 8 * half + slot;
      pick.index[2 * word] = static_cast<uint8_t>(2 * at);
      pick.index[2 * word + 1] = static_cast<uint8_t>(2 * at + 1);
      pick.weight[word] = static_cast<int16_t>(columns.weight(out, tap));
    }
  }
  return true;
}

AreaPlan::AreaPlan(const Box& box, int black_row_count, int height, int width, Simd level)
    : rows(box.height, height),
      columns(box.width, width),
      top(box.top),
      left(box.left),
      black_rows(std::clamp(black_row_count, 0, box.height)),
      division(total()) {
  const bool shrinks = rows.output <= rows.source && columns.output <= columns.source;
  if (!shrinks || !division.exact) return;
  if (level == Simd::kAvx512 && weights_fit(columns)) {
    steps = row_steps(rows, black_rows);
    quads = (columns.taps + 3) / 4;
    far = quads > 1 || !build_picks512(64);
    // Whole sums of one row must fit 15 bits where they have several quads.
    if (far && (columns.total > 128 || !build_picks512(128))) picks512.clear();
  } else if ((level == Simd::kAvx2 || level == Simd::kNeon) && !build_picks256()) {
    picks256.clear();
  }
}

}  // namespace wz::observing
