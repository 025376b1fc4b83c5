#include "nes/render.hpp"

#include <algorithm>
#include <cstring>

#include "nes/ppu.hpp"
#include "nes/render_painter.hpp"

namespace wz {
namespace render {
namespace {

// Where things happen on a line, in dots from its first visible dot. A register write is known by
// the dot its instruction starts at; pixels are ahead of that by the length of the instruction.
constexpr int32_t kLineBegins = -16;  // the first two tiles are fetched ahead
constexpr int32_t kWriteTakes = 12;
constexpr int32_t kNextRow = 240;
constexpr int32_t kLineDrawn = 256;
constexpr int32_t kReloadColumn = 262;
constexpr unsigned kTileSteps = 34;

/// The dot at which tile `step` is fetched, and the eight pixels of the tile two before it drawn.
constexpr int32_t step_dot(unsigned step) {
  return 8 * static_cast<int32_t>(step) - 8 - kWriteTakes;
}

bool rendering(const Scroll& s) { return (s.mask & ppu::kRendering) != 0; }
bool background(const Scroll& s) { return (s.mask & 0x08) != 0; }
bool background_left(const Scroll& s) { return (s.mask & 0x02) != 0; }

auto band_function([[maybe_unused]] Simd level) {
#if defined(__x86_64__)
  if (level == Simd::kAvx512) return draw_band_avx512;
  if (level == Simd::kAvx2) return draw_band_avx2;
#elif defined(__aarch64__)
  if (level == Simd::kNeon) return draw_band_neon;
#endif
  return draw_band_portable;
}

}  // namespace

// The frame is over, so the machine already holds the next frame's parity.
Painter::Painter(const Machine& m, const Cartridge& cart, Simd level)
    : m_(m),
      cart_(cart),
      draw_band_(band_function(level)),
      sprites_(m, cart),
      scroll_(m.picture),
      first_dot_(timing::kFirstLine - (m.odd_frame ? 0 : 1)) {}

void Painter::draw_to(int end, const Canvas& canvas) {
  const int begin = line_;
  canvas_ = canvas;
  background_to(end);
  sprites_.draw(flags_, begin, end, canvas);
}

void Painter::skip_to(int end) {
  canvas_.rows = nullptr;
  background_to(end);
}

void Painter::background_to(int end) {
  while (line_ < end) {
    const int count = std::min(quiet_lines(), end - line_);
    if (count > 0) {
      quiet(count);
    } else {
      busy();
    }
  }
}

/// How many lines pass before a register is written.
int Painter::quiet_lines() const {
  if (next_write_ == m_.raster_count) return kHeight;
  const int32_t lead = m_.raster[next_write_].dot - (dot(line_) + kLineBegins);
  return lead < 0 ? 0 : lead / timing::kDotsPerLine;
}

/// Notes what was on when `line` had been drawn: sprites are looked up one line ahead.
void Painter::note_sprites(int line) {
  if (scroll_.mask & 0x10) {
    flags_[line] |= kShowSprites;
    if (scroll_.mask & 0x04) flags_[line] |= kLeftSprites;
  }
  if (rendering(scroll_)) {
    const unsigned ctrl = scroll_.ctrl & (kSpriteTable | kTallSprites);
    flags_[line + 1] = static_cast<uint8_t>(kSpritesFound | ctrl);
  }
}

/// Lines during which no register is written.
void Painter::quiet(int count) {
  note_sprites(line_);
  if (count > 1) {
    note_sprites(line_ + 1);
    std::memset(flags_ + line_ + 2, flags_[line_ + 1], static_cast<size_t>(count - 2));
    note_sprites(line_ + count - 1);
  }
  if (!rendering(scroll_)) {
    clear_rows(count);
    line_ += count;
    return;
  }
  const uint8_t fine_x = background(scroll_) ? scroll_.fine_x : uint8_t{0};
  if (canvas_.rows) std::memset(&shift(line_), fine_x, static_cast<size_t>(count));
  for (const int end = line_ + count; line_ < end;) {
    const int fine_y = scroll_.v >> 12 & 7;
    int rows = std::min(end - line_, 8 - fine_y);
    // Only the first line can start at a column other than the one in t.
    if ((scroll_.v ^ scroll_.t) & 0x041F) rows = 1;
    quiet_rows(rows);
    const uint16_t last = static_cast<uint16_t>(scroll_.v + ((rows - 1) << 12));
    scroll_.v = ppu::end_of_line(last, scroll_.t);
    line_ += rows;
  }
}

/// Lines that lie in one row of tiles.
void Painter::quiet_rows(int rows) {
  if (!background(scroll_)) return clear_rows(rows);
  if (!canvas_.rows) return;
  const unsigned v = scroll_.v;
  const uint8_t* left = m_.vram + ppu::nametable_index(cart_, v & 0x0C00);
  const uint8_t* right = m_.vram + ppu::nametable_index(cart_, (v & 0x0C00) ^ 0x0400);
  const unsigned name = v & 0x03E0;
  const unsigned attribute = 0x03C0 | (v >> 4 & 0x38);
  draw_band_({.tiles = tiles(),
              .names = {left + name, right + name},
              .attributes = {left + attribute, right + attribute},
              .attribute_shift = v >> 4 & 4,
              .column = v & 0x1F,
              .fine_y = v >> 12 & 7,
              .rows = static_cast<unsigned>(rows),
              .out = row(line_)});
  if (background_left(scroll_)) return;
  for (int i = line_; i < line_ + rows; ++i) std::memset(row(i) + scroll_.fine_x, 0, 8);
}

void Painter::clear_rows(int rows) {
  if (!canvas_.rows) return;
  std::memset(&shift(line_), 0, static_cast<size_t>(rows));
  for (int i = line_; i < line_ + rows; ++i) std::memset(row(i), 0, kWidth);
}

/// A line during which registers are written: tile by tile.
void Painter::busy() {
  clear_rows(1);
  position_ = canvas_.rows ? row(line_) : nullptr;
  line_end_ = position_ ? position_ + kWidth : nullptr;
  tiles_ahead_[0] = tiles_ahead_[1] = 0;
  const int32_t start = dot(line_);
  unsigned step = 0;
  bool next_row_done = false, drawn = false, reloaded = false;
  const auto run_until = [&](int32_t now) {
    while (step < kTileSteps && (step == 0 || step_dot(step) <= now)) tile_step(step++);
    if (!next_row_done && now >= kNextRow) {
      if (rendering(scroll_)) scroll_.v = ppu::next_line(scroll_.v);
      next_row_done = true;
    }
    if (!drawn && now >= kLineDrawn) {
      note_sprites(line_);
      drawn = true;
    }
    if (!reloaded && now >= kReloadColumn) {
      if (rendering(scroll_)) {
        scroll_.v = static_cast<uint16_t>((scroll_.v & ~0x041F) | (scroll_.t & 0x041F));
      }
      reloaded = true;
    }
  };
  const int32_t end = timing::kDotsPerLine + kLineBegins;
  while (next_write_ < m_.raster_count && m_.raster[next_write_].dot - start < end) {
    const RasterWrite& write = m_.raster[next_write_++];
    run_until(write.dot - start);
    ppu::apply(scroll_, write.reg, write.value);
  }
  run_until(end);
  ++line_;
}

void Painter::tile_step(unsigned step) {
  const auto advance = [&] {
    if (position_ < line_end_) position_ += 8;
  };
  if (!rendering(scroll_)) {
    // Nothing is fetched, but the beam moves on, even over the two tiles fetched ahead.
    advance();
    return;
  }
  if (step >= 2) {
    const bool visible = background(scroll_) && (step > 2 || background_left(scroll_));
    if (visible && position_ < line_end_) {
      const unsigned bits = 8u * scroll_.fine_x;
      const uint64_t pixels =
          bits ? tiles_ahead_[0] >> bits | tiles_ahead_[1] << (64 - bits) : tiles_ahead_[0];
      std::memcpy(position_, &pixels, 8);
    }
    advance();
  }
  tiles_ahead_[0] = tiles_ahead_[1];
  tiles_ahead_[1] = fetch();
  const unsigned v = scroll_.v;
  scroll_.v = static_cast<uint16_t>((v & 0x1F) == 0x1F ? v ^ 0x041F : v + 1);
}

uint64_t Painter::fetch() const {
  const unsigned v = scroll_.v;
  const uint8_t* table = m_.vram + ppu::nametable_index(cart_, v & 0x0C00);
  const unsigned attribute = table[0x03C0 | (v >> 4 & 0x38) | (v >> 2 & 7)];
  const uint64_t palette = attribute >> ((v >> 4 & 4) | (v & 2)) & 3;
  return tiles()[table[v & 0x03FF] * 8u + (v >> 12 & 7)] | (palette << 2) * kEveryByte;
}

}  // namespace render

void draw(const Machine& m, const Cartridge& cart, Picture& out, Simd level) {
  render::Painter(m, cart, level).draw_to(kHeight, {out.rows[0], out.shift, 0});
}

void draw(const Machine& m, const Cartridge& cart, Picture& out) {
  draw(m, cart, out, best_simd());
}

void palette_colors(const Machine& m, uint8_t colors[32]) {
  const uint8_t keep = m.picture.mask & 0x01 ? 0x30 : 0x3F;
  for (unsigned i = 0; i < 32; ++i) {
    colors[i] = m.palette[i & 3 ? i : 0] & keep;
  }
}

}  // namespace wz
