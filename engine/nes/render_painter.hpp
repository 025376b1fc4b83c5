#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"
#include "nes/render.hpp"
#include "nes/render_band.hpp"
#include "nes/render_sprites.hpp"

namespace wz::render {

/// Draws a picture from top to bottom, in any number of pieces.
class Painter {
 public:
  Painter(const Machine& m, const Cartridge& cart, Simd level);

  /// Draws the next lines, up to `end`. The canvas must hold them.
  void draw_to(int end, const Canvas& canvas);
  /// Passes over the next lines.
  void skip_to(int end);

 private:
  int32_t dot(int line) const { return first_dot_ + line * timing::kDotsPerLine; }
  uint8_t* row(int line) const { return canvas_.rows + (line - canvas_.first) * Picture::kStride; }
  uint8_t& shift(int line) const { return canvas_.shift[line - canvas_.first]; }
  const uint64_t* tiles() const { return cart_.tiles.data() + (scroll_.ctrl & 0x10 ? 2048 : 0); }

  void background_to(int end);
  int quiet_lines() const;
  void note_sprites(int line);
  void quiet(int count);
  void quiet_rows(int rows);
  void clear_rows(int rows);
  void busy();
  void tile_step(unsigned step);
  uint64_t fetch() const;

  const Machine& m_;
  const Cartridge& cart_;
  void (*draw_band_)(const Band&);
  Sprites sprites_;
  Scroll scroll_;
  int32_t first_dot_;        ///< of line 0
  int line_ = 0;             ///< the next to be drawn
  unsigned next_write_ = 0;  ///< into the machine's register writes
  Canvas canvas_ = {};       ///< without rows where lines are only skipped
  uint64_t tiles_ahead_[2] = {};
  uint8_t* position_ = nullptr;
  uint8_t* line_end_ = nullptr;
  uint8_t flags_[kHeight + 1] = {};  ///< one more than there are: see note_sprites
};

}  // namespace wz::render
