#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

namespace wz {

/// The immutable half of a console: program, graphics and what is derived from them once.
/// Shared by every machine that plays it.
struct Cartridge {
  std::array<uint8_t, 0x8000> prg{};  ///< CPU $8000-$FFFF
  std::array<uint8_t, 0x2000> chr{};  ///< PPU $0000-$1FFF
  bool vertical_mirroring = true;

  /// Every tile row as eight pixel values 0..3, leftmost pixel in the lowest byte:
  /// `tiles[(table * 256 + tile) * 8 + row]`.
  alignas(64) std::array<uint64_t, 512 * 8> tiles{};
  /// The same rows mirrored left to right, for flipped sprites.
  alignas(64) std::array<uint64_t, 512 * 8> tiles_flipped{};

  uint8_t read(uint16_t address) const { return prg[address & 0x7FFF]; }
  uint16_t read16(uint16_t address) const {
    return static_cast<uint16_t>(read(address) | read(static_cast<uint16_t>(address + 1)) << 8);
  }
};

using CartridgePtr = std::shared_ptr<const Cartridge>;

/// Parses an iNES file. Throws std::invalid_argument with one sentence when the file is not a
/// plain NROM cartridge with 32 KiB of program and 8 KiB of graphics.
CartridgePtr parse_ines(std::span<const uint8_t> file);

}  // namespace wz
