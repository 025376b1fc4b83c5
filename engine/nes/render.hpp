#pragma once

#include <cstddef>
#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"
#include "nes/simd.hpp"

namespace wz {

inline constexpr int kWidth = 256;
inline constexpr int kHeight = 240;

/// Lines of palette-RAM indices 0..31. An index whose low two bits are zero is the backdrop.
/// Rows are wider than the screen, so that whole tiles lie aligned whatever the scroll offset: the
/// screen starts `shift` pixels into its row, and what lies outside it means nothing.
template <int kLines>
struct PictureLines {
  static constexpr ptrdiff_t kStride = kWidth + 64;
  alignas(64) uint8_t rows[kLines][kStride];
  uint8_t shift[kLines];
  const uint8_t* line(int y) const { return rows[y] + shift[y]; }
};

using Picture = PictureLines<kHeight>;

/// Draws the frame that has just been run, from the machine as `run_frame` left it.
void draw(const Machine& m, const Cartridge& cart, Picture& out);
/// The same with the instructions of one level, which this CPU must have.
void draw(const Machine& m, const Cartridge& cart, Picture& out, Simd level);

/// The NES colour (0..63) behind each palette-RAM index, with the mirrored entries resolved and
/// the grayscale bit applied.
void palette_colors(const Machine& m, uint8_t colors[32]);

}  // namespace wz
