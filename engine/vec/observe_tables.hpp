#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vec/observe.hpp"

/// The arithmetic of area resize, shared by all instruction sets.
///
/// In one direction every output pixel is a weighted sum of neighbouring source pixels. The
/// weights are whole numbers and have the same sum for every output pixel: source / gcd(source,
/// output). The two directions are multiplied out before the only division, which rounds half up;
/// so every way of computing it gives the same result.
namespace wz::observing {

/// One direction of a resize.
struct Axis {
  int source = 0;
  int output = 0;
  int total = 0;  ///< sum of the weights of one output pixel
  int taps = 0;   ///< most source pixels under one output pixel
  std::vector<int> first;
  std::vector<int> count;
  std::vector<uint16_t> weights;  ///< [output][taps], zero where there are fewer

  Axis(int source_size, int output_size);
  uint16_t weight(int out, int tap) const {
    return weights[static_cast<size_t>(out) * static_cast<size_t>(taps) + static_cast<size_t>(tap)];
  }
};

/// n / total for n = sum + total / 2, as ((n >> before) * factor >> 16) >> after.
struct Division {
  bool exact = false;  ///< proved for every sum that can occur
  int before = 0;
  uint16_t factor = 0;
  int after = 0;

  explicit Division(uint32_t total);
};

/// What happens to the running sums after one source row, when no row serves three output rows.
struct RowStep {
  int16_t weight;  ///< for the output row under way
  int16_t carry;   ///< for the one after it
  bool ends;       ///< the output row is complete
  bool black;
};

/// Sixteen output pixels of four source pixels each: bytes to pick from the 64 or 128 at `offset`.
struct alignas(64) Pick512 {
  uint8_t index[64];
  int8_t weight[64];
  int32_t offset;
};

/// Eight output pixels of four source pixels each; four from each of two 16-byte windows.
struct alignas(32) Pick256 {
  uint8_t index[32];
  int8_t weight[32];
  int32_t offset[2];
};

/// Most source rows under one output row that the AVX2 code can take.
inline constexpr int kRowsAtOnce256 = 20;

/// The pixels a resize reads: rows of `Picture::kStride` bytes, given at the first visible pixel.
/// With `lut`, bytes are indices 0..31 into 64 entries; with a second picture the brighter wins.
struct Source {
  const uint8_t* pixels[2] = {};
  const uint8_t* lut[2] = {};
};

struct AreaPlan {
  Axis rows;
  Axis columns;
  int top, left;   ///< where the source lies on the screen
  int black_rows;  ///< source rows that are black
  Division division;
  std::vector<RowStep> steps;
  std::vector<Pick512> picks512;  ///< [groups][quads]; empty where this cannot serve
  std::vector<Pick256> picks256;
  int groups = 0;
  int quads = 0;
  bool far = false;  ///< picks512 reach over 128 bytes

  struct Box {
    int top, left, height, width;
  };
  AreaPlan(const Box& box, int black_row_count, int height, int width, Simd level);
  uint32_t total() const {
    return static_cast<uint32_t>(rows.total) * static_cast<uint32_t>(columns.total);
  }
};

/// Each writes `rows.output` rows of `columns.output` bytes. The SIMD ones need their picks.
void area_portable(const AreaPlan& plan, const Source& source, uint8_t* out);
void area_avx2(const AreaPlan& plan, const Source& source, uint8_t* out);
void area_avx512(const AreaPlan& plan, const Source& source, uint8_t* out);

}  // namespace wz::observing
