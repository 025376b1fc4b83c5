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

/// Columns of sums, picked as sixteen 16-bit values from two windows of eight: in each window two
/// output pixels of up to four source pixels, or one of up to eight.
struct alignas(32) Pick256 {
  uint8_t index[32];
  int16_t weight[16];
  int32_t offset[2];
};

/// Lines of palette indices or of bytes in memory: rows of `Picture::kStride` bytes.
struct Lines {
  const uint8_t* rows = nullptr;
  const uint8_t* shift = nullptr;
  int first = 0;  ///< the line of the screen that the first row holds

  const uint8_t* line(int y) const {
    return rows + (y - first) * Picture::kStride + shift[y - first];
  }
};

/// The pixels a resize reads. With `lut`, they are indices 0..31 into 64 entries; with a second
/// picture the brighter pixel wins. Black rows are not read.
struct Source {
  Lines lines[2];
  const uint8_t* lut[2] = {};
  bool two() const { return lines[1].rows != nullptr; }
};

struct AreaPlan {
  Axis rows;
  Axis columns;
  int top, left;   ///< where the source lies on the screen
  int black_rows;  ///< source rows that are black
  Division division;
  std::vector<RowStep> steps;

  std::vector<Pick512> picks512;  ///< [groups of 16][quads]; empty where this cannot serve
  std::vector<Pick256> picks256;  ///< [groups of 8][picks]; likewise
  int groups = 0;
  int quads = 0;     ///< tap quads of an output pixel
  int picks = 0;     ///< two or four
  bool far = false;  ///< picks512 reach over 128 bytes

  struct Box {
    int top, left, height, width;
  };
  AreaPlan(const Box& box, int black_row_count, int height, int width, Simd level);

  uint32_t total() const {
    return static_cast<uint32_t>(rows.total) * static_cast<uint32_t>(columns.total);
  }
  bool vectorised() const { return !picks512.empty() || !picks256.empty(); }

 private:
  bool build_picks512(int window);
  bool build_picks256();
};

/// A range of output rows and where the first row of all goes.
struct Target {
  int begin, end;
  uint8_t* out;
};

/// Each writes rows of `columns.output` bytes. The vectorised ones need their picks.
void area_portable(const AreaPlan& plan, const Source& source, const Target& target);
void area_avx2(const AreaPlan& plan, const Source& source, const Target& target);
void area_avx512(const AreaPlan& plan, const Source& source, const Target& target);
void area_neon(const AreaPlan& plan, const Source& source, const Target& target);

}  // namespace wz::observing
