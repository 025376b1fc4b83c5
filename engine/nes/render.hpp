#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"
#include "nes/simd.hpp"

namespace wz {

inline constexpr int kWidth = 256;
inline constexpr int kHeight = 240;

/// A picture as palette-RAM indices 0..31. An index whose low two bits are zero is the backdrop.
/// Rows are wider than the screen so that whole tiles can be stored at any scroll offset; what
/// lies in the margins means nothing.
struct Picture {
  static constexpr int kMargin = 8;
  static constexpr int kStride = kWidth + 2 * kMargin;
  alignas(64) uint8_t rows[kHeight][kStride];
  const uint8_t* line(int y) const { return rows[y] + kMargin; }
};

/// Draws the frame that has just been run, from the machine as `run_frame` left it.
void draw(const Machine& m, const Cartridge& cart, Picture& out);
/// The same with the instructions of one level, which this CPU must have.
void draw(const Machine& m, const Cartridge& cart, Picture& out, Simd level);

/// The NES colour (0..63) behind each palette-RAM index, with the mirrored entries resolved and
/// the grayscale bit applied.
void palette_colors(const Machine& m, uint8_t colors[32]);

}  // namespace wz
