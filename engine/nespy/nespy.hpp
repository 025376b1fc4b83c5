#pragma once

#include <cstdint>
#include <type_traits>

#include "nes/cartridge.hpp"
#include "nes/palette.hpp"

/// A console that behaves like the emulator inside nes-py 8.2.1, step for step: the same RAM and
/// the same picture after every `Step()`, quirks included. It exists so that agents and action
/// sequences made with gym-super-mario-bros play the same here.
///
/// How nes-py differs from a NES, as far as a program can tell:
///  - a step is 29,781 CPU cycles wherever the picture is, so the step boundary drifts by about
///    half a cycle per step and lies inside the game's NMI handler;
///  - an instruction takes effect in its first cycle and then waits for the rest;
///  - a taken branch to another page costs two cycles more, read-modify-write instructions pay
///    for a page crossing, BRK takes 14 cycles, the flags are pushed in reverse bit order;
///  - undocumented opcodes are decoded by their bit fields; those it cannot decode cost one cycle;
///  - the scroll is only reloaded when background and sprites are both on, pixels are fetched one
///    by one from the current VRAM address, and line 0 shows the sprites found for line 240;
///  - VRAM $3000-$3EFE is the fourth name table, $3EFF is palette entry 31, $3FFF nothing; only
///    $3F10 is a palette mirror; a read is buffered when the address *after* it is below $3F00;
///  - enabling the NMI during vertical blank does not raise it; there is no sound and no IRQ.
///
/// Where nes-py reads memory it never initialised (first picture, edge masks, read buffer) the
/// machine starts from zeros; a program that writes $2001 and reads $2007 once, as the game does,
/// cannot tell. Where nes-py leaves its own memory, this machine does not: a colour above 63 is
/// taken modulo 64, and sprite DMA from a page outside RAM leaves the sprites alone.
namespace wz::nespy {

inline constexpr int kScreenWidth = 256;
inline constexpr int kScreenHeight = 240;
inline constexpr int32_t kCyclesPerStep = 29781;

struct Cpu {
  uint16_t pc;
  uint8_t a, x, y, s;
  uint8_t p;          ///< flags as nes-py stores and pushes them: N is bit 0, C is bit 7
  uint8_t odd_cycle;  ///< parity of the cycles since reset; sprite DMA takes one more on odd ones
  int32_t wait;       ///< cycles until the next instruction, counting the one that starts it
};

struct Ppu {
  int16_t line;  ///< -1 pre-render, 0..239 picture, 240 idle, 241..260 vertical blank
  int16_t dot;   ///< next dot of the line, 1..341 (0 only right after reset)
  uint16_t v;    ///< current VRAM address
  uint16_t t;    ///< temporary VRAM address
  uint8_t fine_x;
  uint8_t second_write;  ///< the next $2005/$2006 write is the second of its pair
  uint8_t ctrl;          ///< $2000
  uint8_t mask;          ///< $2001
  uint8_t vblank;
  uint8_t sprite_zero_hit;
  uint8_t odd_frame;
  uint8_t read_buffer;  ///< delayed $2007 reads
  uint8_t oam_address;
  uint8_t sprite_count;
  uint8_t sprites[8];  ///< the sprites of the line being drawn
};

struct Controller {
  uint8_t buttons;  ///< A, B, SELECT, START, UP, DOWN, LEFT, RIGHT from bit 0
  uint8_t shift;
  uint8_t strobe;
};

/// The whole mutable state: one copyable value. Copying it saves, clones and rewinds exactly;
/// nes-py's own, forgetful snapshots are `restore` below.
struct Machine {
  Cpu cpu;
  Ppu ppu;
  Controller controllers[2];
  uint8_t palette[32];
  uint8_t oam[256];
  uint8_t vram[2048];
  uint8_t ram[2048];
  /// Row by row: NES colours 0..63, see kPalette.
  uint8_t screen[kScreenHeight * kScreenWidth];
};

static_assert(std::is_trivially_copyable_v<Machine>);

/// A machine as nes-py has it after construction and the first `Reset()`.
Machine power_on(const Cartridge& cart);

/// nes-py's `Reset()`: CPU and PPU restart; RAM, VRAM, palette, sprites, screen, controllers,
/// the sprite-0 flag, the read buffer and the edge masks survive.
void reset(Machine& m, const Cartridge& cart);

/// nes-py's `Step()` with these buttons held.
void step(Machine& m, const Cartridge& cart, uint8_t buttons, uint8_t buttons2 = 0);

/// nes-py's `Restore()` of a machine that was copied at `Backup()`. The screen comes back with
/// the rest, but the controllers are not part of nes-py's snapshot: buttons, shift registers and
/// strobe stay as they are in `m`.
void restore(Machine& m, const Machine& backup);

/// Whether every field is in the range the functions above rely on. Bytes of unknown origin must
/// pass this before they are stepped.
bool is_valid(const Machine& m);

}  // namespace wz::nespy
