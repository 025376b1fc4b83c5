#pragma once

#include <cstdint>

#include "nespy/ppu.hpp"

namespace wz::nespy {

/// What the CPU sees while one step runs. The PPU is only brought up to date when the program
/// looks at it or vertical blank is near.
class Bus {
 public:
  Bus(Machine& machine, const Cartridge& cartridge)
      : m(machine), cart(cartridge), vblank_(dots_to_vblank(machine.ppu)) {}

  uint8_t read(uint16_t address) {
    if (address >= 0x8000) return cart.read(address);
    if (address < 0x2000) return m.ram[address & 0x7FF];
    return read_io(address);
  }

  void write(uint16_t address, uint8_t value) {
    if (address < 0x2000) {
      m.ram[address & 0x7FF] = value;
    } else if (address < 0x8000) {
      write_io(address, value);
    }
  }

  uint16_t read16(uint16_t address) {
    const int low = read(address);
    return static_cast<uint16_t>(low | read(static_cast<uint16_t>(address + 1)) << 8);
  }

  /// Whether vertical blank may begin before the CPU acts in cycle `at` of this step.
  bool vblank_near(int32_t at) const { return dots_after(at) >= vblank_; }

  /// Runs the PPU up to the moment the CPU acts in cycle `at`. Returns true when an NMI is due.
  bool sync(int32_t at);

  Machine& m;
  const Cartridge& cart;
  int32_t cycle = 0;  ///< of this step; while an instruction executes, its first one

 private:
  /// The PPU does its three dots of a cycle before the CPU acts.
  static int32_t dots_after(int32_t at) { return 3 * (at + 1); }

  uint8_t read_io(uint16_t address);
  void write_io(uint16_t address, uint8_t value);
  void sprite_dma(uint8_t page);

  int32_t dots_ = 0;  ///< of this step, already run
  int32_t vblank_;    ///< dot of this step by which vertical blank may have begun
};

}  // namespace wz::nespy
