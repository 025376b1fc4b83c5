#pragma once

#include <cstdint>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

/// The CPU's view of memory. RAM and ROM are decided here, inline; everything else is `io`.
namespace wz::bus {

/// $2000-$7FFF: PPU registers, controllers, and what NROM leaves open.
uint8_t read_io(Machine* m, const Cartridge* cart, uint16_t address, int32_t start, int32_t end);

/// Returns the time after the write: OAM DMA stops the CPU for 513 cycles.
int32_t write_io(Machine* m, const Cartridge* cart, uint16_t address, uint8_t value, int32_t start,
                 int32_t end);

/// A loop `LDA $2002 / AND #mask / BEQ|BNE` is about to start over at dot `now`. Returns the start
/// of the first iteration that could read something else than the last one did, or of one close to
/// `limit`. The skipped reads would have changed nothing, so leaving them out is exact.
int32_t skip_poll(Machine* m, const Cartridge* cart, uint8_t mask, int32_t now, int32_t limit);

inline uint8_t read(Machine& m, const Cartridge& cart, uint16_t address, int32_t start,
                    int32_t end) {
  if (address < 0x2000) return m.ram[address & 0x7FF];
  if (address >= 0x8000) return cart.prg[address & 0x7FFF];
  return read_io(&m, &cart, address, start, end);
}

[[nodiscard]] inline int32_t write(Machine& m, const Cartridge& cart, uint16_t address,
                                   uint8_t value, int32_t start, int32_t end) {
  if (address < 0x2000) {
    m.ram[address & 0x7FF] = value;
    return end;
  }
  return address >= 0x8000 ? end : write_io(&m, &cart, address, value, start, end);
}

}  // namespace wz::bus
