#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "nes/cartridge.hpp"
#include "nes/machine.hpp"

/// Pictures that no game would draw: random memories, scroll positions and register writes.
namespace wz::slow {

class Dice {
 public:
  explicit Dice(uint32_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<uint32_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  uint8_t byte() { return static_cast<uint8_t>(below(256)); }

 private:
  std::mt19937 engine_;
};

inline CartridgePtr random_cartridge(Dice& dice, bool vertical) {
  std::vector<uint8_t> file(16 + 0x8000 + 0x2000);
  const uint8_t header[7] = {'N', 'E', 'S', 0x1A, 2, 1, static_cast<uint8_t>(vertical)};
  std::memcpy(file.data(), header, sizeof header);
  for (size_t i = 16 + 0x8000; i < file.size(); ++i) {
    // Blank rows, so that backgrounds and sprites have holes of every size.
    file[i] = dice.one_in(3) ? uint8_t{0} : dice.byte();
  }
  return parse_ines(file);
}

inline uint8_t random_mask(Dice& dice) {
  if (dice.one_in(4)) return dice.byte();
  return static_cast<uint8_t>(0x18 | dice.below(8));
}

/// `busy`: how many register writes fall into the picture, anywhere and at the edges of lines.
inline Machine random_machine(Dice& dice, int busy) {
  Machine m{};
  for (auto& byte : m.vram) byte = dice.byte();
  for (auto& byte : m.palette) byte = dice.byte() & 0x3F;
  for (int i = 0; i < 256; i += 4) {
    const bool crowded = dice.one_in(2);
    m.oam[i] = crowded ? static_cast<uint8_t>(100 + dice.below(24)) : dice.byte();
    for (int j = 1; j < 4; ++j) m.oam[i + j] = dice.byte();
    if (dice.one_in(8)) m.oam[i + 3] = static_cast<uint8_t>(dice.below(9));
  }
  m.picture.v = static_cast<uint16_t>(dice.below(0x8000));
  m.picture.t = dice.one_in(2) ? m.picture.v : static_cast<uint16_t>(dice.below(0x8000));
  m.picture.fine_x = static_cast<uint8_t>(dice.below(8));
  m.picture.latch = static_cast<uint8_t>(dice.below(2));
  m.picture.ctrl = dice.byte();
  m.picture.mask = random_mask(dice);
  m.odd_frame = dice.one_in(2);
  const int first = timing::kFirstLine - (m.odd_frame ? 0 : 1);
  int dot = first - 16;
  for (int i = 0; i < busy; ++i) {
    constexpr uint8_t kRegisters[4] = {0, 1, 5, 6};
    dot += dice.one_in(3) ? dice.below(12) : dice.below(2 * 240 * 341 / busy);
    if (dot >= first + 240 * 341) break;
    RasterWrite& write = m.raster[m.raster_count++];
    write = {dot, kRegisters[dice.below(4)], dice.byte()};
    if (write.reg == 1) write.value = random_mask(dice);
  }
  return m;
}

}  // namespace wz::slow
