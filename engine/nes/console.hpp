#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

namespace wz {

/// What translated code calls for everything that is not RAM or ROM. The functions are the
/// interpreter's own, so both see the same hardware. `start` and `end` are the first and last dot
/// of the instruction that touches the bus.
struct NativeIo {
  uint8_t (*read)(Machine* m, const Cartridge* cart, uint16_t address, int32_t start, int32_t end);
  /// Returns the time after the write (OAM DMA takes its own).
  int32_t (*write)(Machine* m, const Cartridge* cart, uint16_t address, uint8_t value,
                   int32_t start, int32_t end);
  /// Skips the iterations of a `LDA $2002 / AND #mask / branch` loop whose outcome is certain.
  int32_t (*skip_poll)(Machine* m, const Cartridge* cart, uint8_t mask, int32_t now, int32_t limit);
};

/// Translated code of one program (see native/). `run` executes from `m->cpu.pc` until it reaches
/// an instruction it does not know, an interrupt is due, or `m->now` is past `limit`; it passes
/// `limit` by less than `slack` dots. `entry[pc - 0x8000]` is non-zero where `run` may begin.
struct NativeCode {
  void (*run)(Machine* m, const Cartridge* cart, const NativeIo* io, int32_t limit) = nullptr;
  const uint8_t* entry = nullptr;
  int32_t slack = 0;
};

/// A machine as it is when the power is switched on.
Machine power_on(const Cartridge& cart);

/// Presses the reset button: RAM survives, everything else restarts.
void reset(Machine& m, const Cartridge& cart);

/// Runs one frame with the buttons in `m.buttons`. With `native` the same result is reached
/// faster; without it the interpreter does everything.
/// Throws IllegalOpcode (with the address) when the program leaves the official instruction set.
void run_frame(Machine& m, const Cartridge& cart, const NativeCode* native = nullptr);

}  // namespace wz
