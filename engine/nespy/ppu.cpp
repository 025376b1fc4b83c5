#include "nespy/ppu.hpp"

#include <algorithm>
#include <cstring>

namespace wz::nespy {
namespace {

constexpr uint16_t kHorizontalBits = 0x041F;
constexpr uint16_t kVerticalBits = 0x7BE0;

struct DotRange {
  int first, last;
  bool has(int dot) const { return first <= dot && dot <= last; }
};

void reload(Ppu& p, uint16_t bits) { p.v = static_cast<uint16_t>((p.v & ~bits) | (p.t & bits)); }

void next_row(Ppu& p) {
  if ((p.v & 0x7000) != 0x7000) {
    p.v = static_cast<uint16_t>(p.v + 0x1000);
    return;
  }
  int row = (p.v >> 5) & 31;
  int v = p.v & ~0x73E0;
  if (row == 29) v ^= 0x0800;
  row = row == 29 ? 0 : (row + 1) & 31;
  p.v = static_cast<uint16_t>(v | row << 5);
}

/// The first eight sprites that touch the line after this one.
void find_sprites(Machine& m) {
  Ppu& p = m.ppu;
  const int height = (p.ctrl & ctrl::kTallSprites) != 0 ? 16 : 8;
  p.sprite_count = 0;
  for (int i = p.oam_address / 4; i < 64 && p.sprite_count < 8; ++i) {
    const int row = p.line - m.oam[i * 4];
    if (0 <= row && row < height) p.sprites[p.sprite_count++] = static_cast<uint8_t>(i);
  }
}

void pre_render(Ppu& p, DotRange dots) {
  if (dots.has(1)) p.vblank = p.sprite_zero_hit = 0;
  if ((p.mask & mask::kBoth) != mask::kBoth) return;
  if (dots.has(258)) reload(p, kHorizontalBits);
  if (dots.first <= 304 && dots.last >= 281) reload(p, kVerticalBits);
}

void visible(Machine& m, const Cartridge& cart, DotRange dots) {
  Ppu& p = m.ppu;
  if (dots.first <= kScreenWidth) {
    draw_pixels(m, cart, dots.first - 1, std::min(dots.last, kScreenWidth));
  }
  if (dots.has(257) && (p.mask & mask::kBackground) != 0) next_row(p);
  if (dots.has(258) && (p.mask & mask::kBoth) == mask::kBoth) reload(p, kHorizontalBits);
  if (dots.has(kLastDot)) find_sprites(m);
}

/// Every other frame is one dot shorter while rendering is on.
bool is_short_line(const Ppu& p) {
  return p.line == kPreRenderLine && p.odd_frame != 0 && (p.mask & mask::kBoth) == mask::kBoth;
}

}  // namespace

bool run_ppu(Machine& m, const Cartridge& cart, int32_t dots) {
  Ppu& p = m.ppu;
  bool nmi = false;
  while (dots > 0) {
    // A line that was found too late to be shortened still ends at its last dot.
    const int end = is_short_line(p) && p.dot < kLastDot ? kLastDot - 1 : kLastDot;
    const DotRange range{p.dot, std::min(end, p.dot + dots - 1)};
    if (p.line == kPreRenderLine) {
      pre_render(p, range);
    } else if (p.line < kScreenHeight) {
      visible(m, cart, range);
    } else if (p.line == kVblankLine && range.has(1)) {
      p.vblank = 1;
      nmi = (p.ctrl & ctrl::kNmi) != 0;
    }
    dots -= range.last - range.first + 1;
    if (range.last < end) {
      p.dot = static_cast<int16_t>(range.last + 1);
      continue;
    }
    p.dot = 1;
    if (p.line < kLastLine) {
      ++p.line;
    } else {
      p.line = kPreRenderLine;
      p.odd_frame ^= 1;
    }
  }
  return nmi;
}

int32_t dots_to_vblank(const Ppu& p) {
  const int32_t rest = kLastDot - p.dot + 1;
  if (p.line == kVblankLine && p.dot == 1) return 1;
  if (p.line == kPreRenderLine) {
    return std::max<int32_t>(rest - 1, 1) + kVblankLine * kLastDot + 1;
  }
  if (p.line < kVblankLine) return rest + (kVblankLine - 1 - p.line) * kLastDot + 1;
  return rest + (kLastLine - p.line) * kLastDot + (kLastDot - 1) + kVblankLine * kLastDot + 1;
}

void copy_sprites(Machine& m, const uint8_t* page) {
  const size_t start = m.ppu.oam_address;
  std::memcpy(m.oam + start, page, sizeof m.oam - start);
  std::memcpy(m.oam, page + (sizeof m.oam - start), start);
}

}  // namespace wz::nespy
