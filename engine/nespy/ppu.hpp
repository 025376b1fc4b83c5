#pragma once

#include <cstdint>

#include "nespy/nespy.hpp"

namespace wz::nespy {

/// Bits of $2001 as nes-py understands them.
namespace mask {
inline constexpr uint8_t kLeftBackground = 0x02;
inline constexpr uint8_t kLeftSprites = 0x04;
inline constexpr uint8_t kBackground = 0x08;
inline constexpr uint8_t kSprites = 0x10;
inline constexpr uint8_t kBoth = kBackground | kSprites;
}  // namespace mask

/// Bits of $2000.
namespace ctrl {
inline constexpr uint8_t kIncrement32 = 0x04;
inline constexpr uint8_t kSpriteTable = 0x08;
inline constexpr uint8_t kBackgroundTable = 0x10;
inline constexpr uint8_t kTallSprites = 0x20;
inline constexpr uint8_t kNmi = 0x80;
}  // namespace ctrl

inline constexpr int kLastDot = 341;
inline constexpr int kPreRenderLine = -1;
inline constexpr int kVblankLine = 241;
inline constexpr int kLastLine = 260;

/// Lets `dots` dots pass. The registers do not change meanwhile, so whole runs of dots are done at
/// once. Returns true when vertical blank began and asks for an NMI.
bool run_ppu(Machine& m, const Cartridge& cart, int32_t dots);

/// The fewest dots after which vertical blank may have begun. Exact except on the pre-render line,
/// whose length depends on whether rendering is on at its end.
int32_t dots_to_vblank(const Ppu& p);

/// $2000-$2007, already reduced to 0..7. The PPU must be up to date.
uint8_t read_ppu(Machine& m, const Cartridge& cart, int reg);
void write_ppu(Machine& m, const Cartridge& cart, int reg, uint8_t value);

/// Copies a page to sprite memory, starting at the current sprite address.
void copy_sprites(Machine& m, const uint8_t* page);

/// The PPU's own bus: graphics, name tables, palette.
uint8_t read_vram(const Machine& m, const Cartridge& cart, uint16_t address);
void write_vram(Machine& m, const Cartridge& cart, uint16_t address, uint8_t value);

/// Draws pixels [first, end) of the current line and moves `v` along.
void draw_pixels(Machine& m, const Cartridge& cart, int first, int end);

}  // namespace wz::nespy
