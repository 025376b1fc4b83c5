#pragma once

#include <cstdint>
#include <type_traits>

namespace wz {

/// Time is counted in PPU dots since the start of the frame; a CPU cycle is three dots.
///
/// A frame starts where the picture is complete: at the first dot of line 240. One line later the
/// vertical blank begins and the NMI fires; the game reads the buttons, works, and is idle again
/// before the next frame starts. So "run one frame" is: read input, run the handler, draw.
namespace timing {
inline constexpr int32_t kDotsPerCycle = 3;
inline constexpr int32_t kDotsPerLine = 341;
inline constexpr int32_t kVblankSet = kDotsPerLine;
inline constexpr int32_t kNmi = kVblankSet + 12;
inline constexpr int32_t kFlagsCleared = kVblankSet + 20 * kDotsPerLine;
inline constexpr int32_t kScrollReload = kFlagsCleared + 325;
inline constexpr int32_t kFirstLine = kFlagsCleared + kDotsPerLine;
inline constexpr int32_t kFrame = 262 * kDotsPerLine;
}  // namespace timing

/// CPU registers. `p` holds the flags in 6502 order (NV-BDIZC).
struct Registers {
  uint16_t pc;
  uint8_t a, x, y, s, p;
};

/// What the background looked like to the PPU at some moment.
struct Scroll {
  uint16_t v;      ///< current VRAM address (loopy v)
  uint16_t t;      ///< temporary VRAM address (loopy t)
  uint8_t fine_x;  ///< pixel offset inside a tile
  uint8_t latch;   ///< first/second write toggle
  uint8_t ctrl;    ///< $2000
  uint8_t mask;    ///< $2001
};

/// A write to a PPU register while the picture was being drawn.
struct RasterWrite {
  int32_t dot;
  uint8_t reg;  ///< 0, 1, 5 or 6
  uint8_t value;
};

/// How far the PPU's own events of this frame have been applied.
enum class PpuPhase : uint8_t { kPicture, kVblank, kPreRender, kDrawing };

enum class NmiState : uint8_t { kNone, kDelayed, kPending };

inline constexpr int kMaxRasterWrites = 24;
inline constexpr int32_t kHitUnknown = -1;
inline constexpr int32_t kHitNever = INT32_MAX;

/// The whole mutable state of a console: one copyable value. Save, load, clone and rewind are
/// copies of it. The ROM is not part of it.
struct Machine {
  Registers cpu;
  NmiState nmi;
  uint8_t dead_frames;  ///< frames after power-on in which the PPU does nothing
  int32_t now;          ///< dots since the frame started
  uint32_t frame;       ///< frames since power-on

  // PPU registers and latches.
  Scroll scroll;
  PpuPhase phase;
  bool odd_frame;       ///< every other frame is one dot shorter
  uint8_t status;       ///< vblank, sprite-0 hit, sprite overflow
  uint8_t io_latch;     ///< what the PPU's data bus last carried
  uint8_t read_buffer;  ///< delayed $2007 reads
  uint8_t oam_address;
  int32_t hit_dot;  ///< when sprite 0 will hit in this frame

  // What drawing this frame's picture needs: the state at its first line and what changed after.
  Scroll picture;
  uint8_t raster_count;
  RasterWrite raster[kMaxRasterWrites];

  // Controllers: bit 0 = A, B, SELECT, START, UP, DOWN, LEFT, RIGHT = bit 7.
  uint8_t buttons[2];
  uint8_t shift[2];
  uint8_t strobe;

  uint8_t palette[32];
  uint8_t oam[256];
  uint8_t vram[2048];
  uint8_t ram[2048];
};

static_assert(std::is_trivially_copyable_v<Machine>);

/// Dots in the frame that is running.
inline int32_t frame_length(const Machine& m) {
  return timing::kFrame - (m.dead_frames == 0 && m.odd_frame ? 1 : 0);
}

/// First dot of visible line `line` in the frame that is running.
inline int32_t line_start(const Machine& m, int line) {
  return timing::kFirstLine - (m.odd_frame ? 1 : 0) + line * timing::kDotsPerLine;
}

}  // namespace wz
